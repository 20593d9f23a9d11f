"""`gantry pipeline`: data work on Spark. Each command is loaded only when it is called."""

import click

from gantrymq.cli.lazy import LazyGroup

COMMANDS: dict[str, str] = {}
HELP: dict[str, str] = {}


@click.group(cls=LazyGroup, places=COMMANDS, summaries=HELP)
def pipeline() -> None:
    """Archive, replay, report and audit with Spark (on this machine unless --master says else)."""
