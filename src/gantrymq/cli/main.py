"""`gantry`: the table of all commands. A command is imported only when it is called."""

import click

from gantrymq.cli.common.lazy import LazyGroup

COMMANDS = {
    "up": "gantrymq.cli.up.command:up",
    "namesrv": "gantrymq.cli.servers:mqnamesrv",
    "broker": "gantrymq.cli.servers:mqbroker",
    "send": "gantrymq.cli.send:send",
    "tail": "gantrymq.cli.tail:tail",
    "find": "gantrymq.cli.find:find",
    "why": "gantrymq.cli.why:why",
    "run": "gantrymq.cli.run:run",
    "waiting": "gantrymq.cli.waiting:waiting",
    "lag": "gantrymq.cli.lag:lag",
    "cluster": "gantrymq.cli.cluster:cluster",
    "raft": "gantrymq.cli.raft:raft",
    "topic": "gantrymq.cli.topic:topic",
    "group": "gantrymq.cli.group:group",
    "reset": "gantrymq.cli.reset:reset",
    "dlq": "gantrymq.cli.dlq:dlq",
    "nsaddr": "gantrymq.cli.nsaddr:nsaddr",
    "store": "gantrymq.cli.store:store",
    "pipeline": "gantrymq.cli.pipeline.group:pipeline",
    "bench": "gantrymq.cli.bench:bench",
}
HELP = {
    "up": "Run a name server and brokers.",
    "namesrv": "Run a name server (mqnamesrv).",
    "broker": "Run a broker (mqbroker).",
    "send": "Send one message.",
    "tail": "Print messages of a topic.",
    "find": "Find stored messages by id, key, place or time.",
    "why": "Show the history of one message.",
    "run": "Run the handlers of an App (MODULE:APP).",
    "waiting": "Show delayed messages, and how late deliveries are.",
    "lag": "Show the lag of groups by queue, and the member that holds it.",
    "cluster": "Show the brokers: masters, slaves, copies and figures.",
    "raft": "Show raft groups, and hand leadership on.",
    "topic": "List, show, create, change and delete topics.",
    "group": "List, show, change and delete consumer groups.",
    "reset": "Reset the progress of a group, with a preview.",
    "dlq": "List, show, resend and export dead letters.",
    "nsaddr": "Serve the addresses of name servers over HTTP.",
    "store": "Cut the log of a slave whose master lost messages.",
    "pipeline": "Archive, replay, report and audit with Spark.",
    "bench": "Measure sending or consuming.",
}


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    summaries=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="gantrymq")
def main() -> None:
    """GantryMQ: RocketMQ's messaging system in Python."""
