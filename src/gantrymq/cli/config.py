"""`gantry config explain`: where the value of a setting comes from, and what it means."""

import asyncio
import fnmatch
import logging
import os
from collections.abc import Mapping, Sequence

import click

from gantrymq.base.config import WrittenSettings, unknown_key
from gantrymq.base.errors import ConfigError
from gantrymq.broker.settings import rocketmq_keys
from gantrymq.broker.settings.config import BrokerConfig, broker_config
from gantrymq.broker.settings.live_settings import own_file
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.mqadmin.values import address
from gantrymq.cli.pages.field_docs import field_docs
from gantrymq.cli.pages.settings import BROKER, NAME_SERVER, SettingsClass
from gantrymq.client.admin.admin import Admin
from gantrymq.nameserver import config as nameserver

REPLACED = {
    "*ThreadPoolNums": "one event loop answers all requests; more cores are more brokers",
    "*Threads": "one event loop answers all requests; more cores are more brokers",
    "*ThreadPoolQueueCapacity": "requests do not queue for threads; sendThreadPoolQueueCapacity "
    "bounds pending sends",
    "waitTimeMillsIn*": "requests do not queue for threads; waitTimeMillsInSendQueue bounds how "
    "long a send waits",
    "*rocksdb*": "the store is files; there is no RocksDB",
    "*RocksDB*": "the store is files; there is no RocksDB",
    "transientStorePool*": "writes go to the page cache at once; flushDiskType says when to disk",
    "warmMapedFile*": "files are allocated ahead; nothing is warmed up",
    "*SwapMap*": "files are not mapped, so nothing is swapped",
    "*MapedFile*": "files are not mapped",
    "*Metric*": "figures are counted in memory and told by metricsExporterType, not kept in files",
    "timer*": "timers are kept to the millisecond; timerMaxDelaySec bounds them",
    "popCk*": "checkpoints of POP are kept in memory and in the log",
    "*ColdData*": "old and new messages are read the same way",
    "cold*": "old and new messages are read the same way",
    "*Controller*": "raft groups elect their leader: enableDLegerCommitLog",
    "commercial*": "nobody bills here",
    "client*": "clients have their own options: docs/client-options.md",
    "server*": "the operating system chooses sizes of sockets; one event loop serves them",
    "flushConsumeQueue*": "queues are flushed with checkpoints",
    "auth*": "users and policies lie in one file, config/access.json, and are kept in memory",
    "commit*": "writes go to the page cache at once; there is no buffer to commit",
}
"""What takes the place of RocketMQ's keys that have no effect here, by patterns of their names."""
NOTHING = "nothing: this broker has no such part"


@click.group("config")
def config() -> None:
    """Explain settings of brokers and name servers."""


@config.command("explain", cls=GuardedCommand)
@click.argument("key")
@click.option(
    "-c",
    "--configFile",
    "files",
    metavar="FILE",
    multiple=True,
    help="A property file, as mqbroker -c takes it; of several the later ones win.",
)
@click.option(
    "-D", "overrides", metavar="KEY=VALUE", multiple=True, help="A setting of the command line."
)
@click.option("--broker", metavar="ADDR", help="Ask this running broker what is in force.")
@click.option(
    "--server",
    type=click.Choice(["broker", "namesrv"]),
    default="broker",
    show_default=True,
    help="Whose setting it is.",
)
@namesrv_option
@output_option
def explain(
    key: str,
    files: tuple[str, ...],
    overrides: tuple[str, ...],
    broker: str | None,
    server: str,
    namesrv: str | None,
    output: str,
) -> None:
    """Show the value of KEY: which file, option or default it comes from, and what it means.

    With --broker it is the value that is in force there; otherwise the value with which a server
    would start with these files and options.
    """
    if broker is not None and (files or overrides or server != "broker"):
        raise click.UsageError("--broker asks a running broker: leave out -c, -D and --server")
    known = BROKER if server == "broker" else NAME_SERVER
    ignored = rocketmq_keys.IGNORED_KEYS if server == "broker" else nameserver.IGNORED_KEYS
    written, given = [WrittenSettings.in_file(path) for path in files], _given(overrides)
    if key not in known.defaults.__struct_encode_fields__:
        row = _without_effect(key, known, ignored, [given, *reversed(written)])
    elif broker is not None:
        row = asyncio.run(_in_force(key, address(broker), namesrv))
    else:
        row = _at_start(key, known, written, given)
    if output == "table":
        for name, value in row.items():
            print(f"{name:<9} {value}")
    else:
        print_rows([row], output)


def _given(overrides: Sequence[str]) -> WrittenSettings:
    pairs = {}
    for item in overrides:
        key, mark, value = item.partition("=")
        if not mark:
            raise click.UsageError(f"-D {item}: write KEY=VALUE")
        pairs[key] = value
    return WrittenSettings(pairs, {key: f"the command line (-D {key})" for key in pairs})


def _at_start(
    key: str, known: SettingsClass, written: Sequence[WrittenSettings], given: WrittenSettings
) -> Row:
    """The value with which a server starts: the command line, then files, the last one first."""
    if not written and isinstance(known.defaults, BrokerConfig):
        written = [_own_settings(key, given)]
    layers = [layer for layer in (given, *reversed(written)) if key in layer.values]
    value, source = known.default(key), "default"
    if layers:
        value, source = layers[0].values[key].strip(), layers[0].places[key]
    row = {"key": key, "value": value, "from": source}
    beaten = [f"{layer.values[key].strip()} of {layer.places[key]}" for layer in layers[1:]]
    if beaten:
        row["beats"] = ", ".join(beaten)
    return row | _meaning(key, known)


def _own_settings(key: str, given: WrittenSettings) -> WrittenSettings:
    """What a broker without `-c` has in its own file, where calls have written changes."""
    home = given.values.get("storePathRootDir", BrokerConfig().store_path_root_dir)
    path = own_file(BrokerConfig(store_path_root_dir=home))
    if key in BROKER.fixed or not os.path.exists(path):
        return WrittenSettings()
    return WrittenSettings.in_file(path)


async def _in_force(key: str, place: str, namesrv: str | None) -> Row:
    """The value of a running broker; its file tells where it comes from, if it is here."""
    async with Admin(namesrv or place) as admin:
        values = await admin.broker_config(place)
    if key not in values:
        raise ConfigError(f"the broker at {place} has no setting {key}")
    row = {"key": key, "value": values[key], "from": _source(key, values)}
    return row | _meaning(key, BROKER)


def _source(key: str, values: Mapping[str, str]) -> str:
    home = values.get("storePathRootDir", "")
    path = values.get("brokerConfigPath") or f"{home}/config/broker.properties"
    try:
        written = WrittenSettings.in_file(path)
    except ConfigError:
        written = WrittenSettings()
    if key in written.values:
        text = written.values[key].strip()
        if text == values[key]:
            return written.places[key]
        return f"the command line, above {text} of {written.places[key]}, or that waits for a start"
    if values[key] == BROKER.default(key):
        return "default"
    return f"the command line, or {path} on the broker's machine"


def _meaning(key: str, known: SettingsClass) -> Row:
    kind = type(known.defaults)
    name = kind.__struct_fields__[kind.__struct_encode_fields__.index(key)]
    when = "at start"
    if key in known.live:
        when = "at once"
    elif key in known.fixed:
        when = "at start; a call may not change it"
    return {
        "default": known.default(key),
        "meaning": field_docs(kind)[name],
        "in force": when,
        "RocketMQ": known.in_rocketmq(key),
    }


def _without_effect(
    key: str, known: SettingsClass, ignored: frozenset[str], layers: Sequence[WrittenSettings]
) -> Row:
    """A key of RocketMQ that has no effect here, or stops the start; else an error."""
    written = next((layer for layer in layers if key in layer.values), WrittenSettings())
    value = written.values.get(key, "").strip()
    stops = known is BROKER and _stops_the_start(key, value)
    if not stops and key not in ignored:
        keys = [*known.defaults.__struct_encode_fields__, *ignored]
        raise ConfigError(unknown_key(key, keys, otherwise="there is none like it"))
    row = {"key": key, "value": value or "not set"}
    if key in written.places:
        row["from"] = written.places[key]
    if stops:
        return row | {"meaning": f"a broker does not start with it: {stops}"}
    instead = next(
        (text for pattern, text in REPLACED.items() if fnmatch.fnmatchcase(key, pattern)), NOTHING
    )
    return row | {
        "meaning": "a setting of RocketMQ without effect here: it is accepted, with a warning",
        "instead": instead,
    }


def _stops_the_start(key: str, value: str) -> str:
    """Why a broker refuses the key with this value, or if it is not set with `true`."""
    logging.getLogger("gantrymq.base.config").setLevel(logging.ERROR)
    try:
        broker_config(WrittenSettings({key: value or "true"}))
    except ConfigError as error:
        return "" if str(error).startswith("unknown setting") else str(error)
    return ""
