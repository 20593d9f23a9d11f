"""`gantry store`: the table of its commands. A command is imported only when it is called."""

import click

from gantrymq.cli.common.lazy import LazyGroup

COMMANDS = {
    "stat": "gantrymq.cli.stores.stat:stat",
    "verify": "gantrymq.cli.stores.verify:verify",
    "dump": "gantrymq.cli.stores.dump:dump",
    "repair": "gantrymq.cli.stores.repair:repair",
    "snapshot": "gantrymq.cli.stores.snapshot:snapshot",
    "restore": "gantrymq.cli.stores.snapshot:restore",
    "migrate": "gantrymq.cli.stores.migrate:migrate",
    "cut": "gantrymq.cli.stores.cut:cut",
}
HELP = {
    "stat": "Show what a store holds: log, queues, index, tables, checkpoint.",
    "verify": "Check every record, queue entry, index entry and table of a store.",
    "dump": "Print records of a store, or the contents of one of its files.",
    "repair": "Show how a store can be repaired; with --yes, do it.",
    "snapshot": "Copy a store, also while its broker runs.",
    "restore": "Make a store from a snapshot.",
    "migrate": "Make a store from one of RocketMQ's raft groups (DLedger).",
    "cut": "Cut the log of a slave whose master lost messages.",
}


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    summaries=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def store() -> None:
    """Look at the folder of a broker, check it, repair it. Stores of ours and of RocketMQ."""
