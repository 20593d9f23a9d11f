"""`gantry pipeline`: the table of its commands. A command is imported only when it is called."""

import click

from gantrymq.cli.common.lazy import LazyGroup

COMMANDS = {
    "archive": "gantrymq.cli.pipeline.archive:archive",
    "tables": "gantrymq.cli.pipeline.tables:tables",
    "compact": "gantrymq.cli.pipeline.compact:compact",
    "replay": "gantrymq.cli.pipeline.replay:replay",
    "run": "gantrymq.cli.pipeline.jobs:run",
    "again": "gantrymq.cli.pipeline.jobs:again",
    "report": "gantrymq.cli.pipeline.report:report",
    "audit": "gantrymq.cli.pipeline.audit:audit",
    "bundle": "gantrymq.cli.pipeline.bundle:bundle",
    "warm": "gantrymq.cli.pipeline.warm:warm",
}
HELP = {
    "archive": "Copy topics into a lakehouse table, each message once.",
    "tables": "List the archives in a folder: topics, rows, bytes, times.",
    "compact": "Join small files of an archive and delete leftovers.",
    "replay": "Send messages of the past again, marked, in order and at a rate.",
    "run": "Run a job for all messages that are new since its last run.",
    "again": "Run a job again for a period and replace the rows of that period.",
    "report": "Write tables, pictures and a page about topics and groups, with a no-loss ledger.",
    "audit": "Check every record, queue entry and index entry of a store.",
    "bundle": "Write a file with the code that executors of a cluster need.",
    "warm": "Make Spark start faster on this machine.",
}


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    summaries=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def pipeline() -> None:
    """Archive, replay, report and audit with Spark, on this machine unless --master is given."""
