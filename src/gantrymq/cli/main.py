"""`gantry`: the table of all commands. A command is imported only when it is called."""

import os

import click

from gantrymq.cli.common.lazy import LazyGroup

FILE_VARIABLE = "GANTRY_CREDENTIALS"
"""As in `access.key_sources`, which a command that needs no key does not import."""

COMMANDS = {
    "up": "gantrymq.cli.up.command:up",
    "console": "gantrymq.cli.console:console",
    "namesrv": "gantrymq.cli.servers:mqnamesrv",
    "broker": "gantrymq.cli.servers:mqbroker",
    "admin": "gantrymq.cli.admin:admin",
    "send": "gantrymq.cli.send:send",
    "tail": "gantrymq.cli.tail:tail",
    "find": "gantrymq.cli.find:find",
    "history": "gantrymq.cli.history:history",
    "why": "gantrymq.cli.history:why",
    "run": "gantrymq.cli.run:run",
    "waiting": "gantrymq.cli.waiting:waiting",
    "lag": "gantrymq.cli.lag:lag",
    "monitor": "gantrymq.cli.monitor:monitor",
    "doctor": "gantrymq.cli.doctor:doctor",
    "debug": "gantrymq.cli.debug:debug",
    "cluster": "gantrymq.cli.cluster:cluster",
    "raft": "gantrymq.cli.raft:raft",
    "config": "gantrymq.cli.config:config",
    "acl": "gantrymq.cli.acl:acl",
    "topic": "gantrymq.cli.topic:topic",
    "group": "gantrymq.cli.group:group",
    "reset": "gantrymq.cli.reset:reset",
    "dlq": "gantrymq.cli.dlq:dlq",
    "profile": "gantrymq.cli.profile:profile",
    "nsaddr": "gantrymq.cli.nsaddr:nsaddr",
    "store": "gantrymq.cli.stores.group:store",
    "pipeline": "gantrymq.cli.pipeline.group:pipeline",
    "bench": "gantrymq.cli.bench:bench",
    "completion": "gantrymq.cli.completion:completion",
}
HELP = {
    "up": "Run a name server and brokers.",
    "console": "Serve the web console.",
    "namesrv": "Run a name server (mqnamesrv).",
    "broker": "Run a broker (mqbroker).",
    "admin": "Run a command of mqadmin.",
    "send": "Send messages: an argument, a file, or lines of a pipe.",
    "tail": "Print messages of a topic, filtered, as they arrive.",
    "find": "Find stored messages by id, key, place or time.",
    "history": "Show the history of one message.",
    "why": "The same as history.",
    "run": "Run the handlers of an App (MODULE:APP).",
    "waiting": "Show delayed messages, and how late deliveries are.",
    "lag": "Show the lag of groups by queue, and the member that holds it.",
    "monitor": "Watch all groups, and tell what goes wrong.",
    "doctor": "Find what is wrong with a cluster or a machine, and how to mend it.",
    "debug": "Write an archive with all that is needed to look into a trouble.",
    "cluster": "Show the brokers: masters, slaves, copies and figures.",
    "raft": "Show raft groups, and hand leadership on.",
    "config": "Explain settings: where a value comes from, and what it means.",
    "acl": "Explain which rule of access control decides.",
    "topic": "List, show, create, change and delete topics.",
    "group": "List, show, change and delete consumer groups.",
    "reset": "Reset the progress of a group, with a preview.",
    "dlq": "List, show, resend and export dead letters.",
    "profile": "Keep names for several clusters.",
    "nsaddr": "Serve the addresses of name servers over HTTP.",
    "store": "Look at a store's folder, check it, repair it.",
    "pipeline": "Archive, replay, report and audit with Spark.",
    "bench": "Measure sending or consuming.",
    "completion": "Print the completion script of a shell.",
}


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    summaries=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--key-file",
    metavar="FILE",
    help="Key pair, and TLS if the file says so; as $GANTRY_CREDENTIALS.",
)
@click.version_option(package_name="gantrymq")
def main(key_file: str | None) -> None:
    """GantryMQ: RocketMQ's messaging system in Python."""
    if key_file is not None:
        # By the environment, so that Spark's processes on this machine have it, too.
        os.environ[FILE_VARIABLE] = os.path.abspath(key_file)
