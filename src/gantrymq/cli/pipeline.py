"""`gantry pipeline`: data work on Spark. Each command is loaded only when it is called."""

import click

from gantrymq.cli.lazy import LazyGroup

COMMANDS = {
    "bundle": "gantrymq.cli.pipeline_bundle:bundle",
    "warm": "gantrymq.cli.pipeline_warm:warm",
}
HELP = {
    "bundle": "Write one file with what executors of a cluster need.",
    "warm": "Let Spark start in half the time from now on.",
}


@click.group(cls=LazyGroup, places=COMMANDS, summaries=HELP)
def pipeline() -> None:
    """Archive, replay, report and audit with Spark (on this machine unless --master says else)."""
