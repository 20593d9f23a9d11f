"""Everything that was said to RocketMQ is said to us: we answer as one of its releases did."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from player import Step, play_all

RECORDINGS = Path(__file__).resolve().parent / "recordings"


@functools.cache
def recorded(area: str) -> list[Step]:
    """The steps of one recording, with the answers of both releases."""
    steps: list[Step] = json.loads((RECORDINGS / f"{area}.json").read_text())
    return steps


@functools.cache
def played(area: str, addresses: tuple[str, str]) -> list[dict[str, Any] | None]:
    """Our answers to one recording; it is played once, each step is then judged by its own test."""
    return play_all(recorded(area), *addresses)


STEPS = [
    pytest.param(path.stem, at, id=f"{path.stem}: {step['name']}")
    for path in sorted(RECORDINGS.glob("*.json"))
    for at, step in enumerate(recorded(path.stem))
]


@pytest.mark.parametrize("area, at", STEPS)
def test_we_answer_as_a_release_of_rocketmq_did(
    area: str, at: int, addresses: tuple[str, str]
) -> None:
    """
    Code, header fields and body equal the normalised answer of at least one release. A step
    where both releases do worse than they should names the better answer, and why.
    """
    step, ours = recorded(area)[at], played(area, addresses)[at]
    accepted = step["answers"]

    if ours is not None and ours.get("code") in step.get("better", {}).get("codes", ()):
        return
    good = [version for version, theirs in accepted.items() if _agrees(ours, theirs, step)]
    assert good, f"ours:\n{_text(ours)}\nRocketMQ's:\n{_text(accepted)}"


def _agrees(ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None, step: Step) -> bool:
    """Texts for people may differ; where only the shape counts, more entries may be there."""
    if ours is None or theirs is None:
        return ours is theirs
    mine, other = ({**answer, "remark": None} for answer in (ours, theirs))
    if step.get("shape") and "body" in mine and "body" in other:
        (a,), (b,) = mine.pop("body")["json"].values(), other.pop("body")["json"].values()
        return bool(a.items() >= b.items()) and mine == other
    return mine == other


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
