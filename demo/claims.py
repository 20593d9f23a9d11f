"""What the story claims, and the verdict."""

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from gantrymq.testing.invariants import Invariant


class Claim(NamedTuple):
    """A sentence, the figure behind it, and whether it held."""

    sentence: str
    figure: str
    held: bool


def claim_of(invariant: Invariant[...], who: str, figure: str, held: bool) -> Claim:
    """That an invariant holds, which simulator and chaos runs check as well."""
    return Claim(f"{who}: {invariant.name}", figure, held)


def verdict(claims: Iterable[Claim], console: Console, title: str) -> bool:
    """Show all claims; True when there are some and each of them held."""
    table = Table("claim", "figure", "held", title=title)
    held = []
    for claim in claims:
        table.add_row(claim.sentence, claim.figure, "[green]yes" if claim.held else "[bold red]NO")
        held.append(claim.held)
    console.print(table)
    return bool(held) and all(held)


def spread(milliseconds: Iterable[int]) -> str:
    """How late things were, in words."""
    late = sorted(milliseconds)
    if not late:
        return "none"
    return f"half within {statistics.median(late):,.0f} ms, all within {late[-1]:,} ms"
