"""`gantry topic`: look at topics, make, change and delete them, move what waits in them."""

import asyncio
import sys
from typing import Any

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.deleting import belongs_to_brokers, delete_confirmed
from gantrymq.cli.common.known import check_topic
from gantrymq.cli.common.output import (
    ABOVE_0,
    INTERRUPTED,
    Row,
    fail,
    namesrv_option,
    output_option,
    print_listed,
    print_rows,
)
from gantrymq.cli.common.times import shown_or_ms
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.shrink import shrink_topic
from gantrymq.client.admin.spread import RATE_DEFAULT, Keyless, Spread, SpreadRow
from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.model import (
    DEAD_PREFIX,
    READ,
    RETRY_PREFIX,
    WRITE,
    Queue,
    TopicConfig,
    is_system_topic,
)
from gantrymq.protocol.bodies import TopicOffset
from gantrymq.protocol.codes import ResponseCode

PERMISSIONS = {"rw": READ | WRITE, "r": READ, "w": WRITE}
QUEUES_MAX = 65_536

Configs = dict[str, TopicConfig]
"""Broker name to what it knows about one topic."""


@click.group("topic")
def topic() -> None:
    """Topics: look at them, make, change and delete them."""


def permission_text(perm: int) -> str:
    """`rw`, `r`, `w`, or `-` for a topic that is closed."""
    return (("r" if perm & READ else "") + ("w" if perm & WRITE else "")) or "-"


@topic.command("list")
@click.option(
    "--all", "everything", is_flag=True, help="Also retries, dead letters and system topics."
)
@click.option("--cluster", help="Only topics on the brokers of this cluster.")
@namesrv_option
@output_option
def list_topics(everything: bool, cluster: str | None, namesrv: str | None, output: str) -> None:
    """All topics: their queues and permissions, and the brokers that have them."""

    async def run() -> dict[str, Configs]:
        async with Admin(namesrv) as admin:
            return await _all_configs(admin, cluster=cluster)

    found = asyncio.run(run())
    names = [name for name in found if everything or not _is_internal(name, found)]
    chosen = {name: found[name] for name in names}
    print_rows([_list_row(name, each) for name, each in chosen.items()], output)
    print_listed(len(chosen), "topic", hidden=len(found) - len(chosen))


@topic.command("show")
@click.argument("name", metavar="TOPIC")
@namesrv_option
@output_option
def show(name: str, namesrv: str | None, output: str) -> None:
    """The queues of TOPIC: what is stored in each, and since when; and who reads it."""

    async def run() -> tuple[Configs, dict[Queue, TopicOffset], list[str]]:
        async with Admin(namesrv) as admin:
            await check_topic(admin, name)
            configs = (await _all_configs(admin)).get(name, {})
            return configs, await admin.topic_stats(name), await admin.topic_groups(name)

    configs, queues, groups = asyncio.run(run())
    people = output == "table"
    rows = [_queue_row(queue, row, people) for queue, row in queues.items()]
    if not people:
        whole = {
            "topic": name,
            "brokers": [_broker_row(b, each) for b, each in configs.items()],
            "queues": rows,
            "groups": groups,
        }
        print_rows([whole], output)
        return
    print_rows(rows, output)
    for broker, config in configs.items():
        words = " ".join(f"{key}={value}" for key, value in _broker_row(broker, config).items())
        print(words, file=sys.stderr)
    stored = sum(row.max_offset - row.min_offset for row in queues.values())
    readers = f"read by {', '.join(groups)}" if groups else "read by no group"
    print(f"{counted(stored, 'message')} stored, {readers}", file=sys.stderr)


def _queue_options(function: Any) -> Any:
    """What a topic is made of."""
    numbers = click.IntRange(1, QUEUES_MAX)
    options = [
        click.option("--queues", type=numbers, help="Queues a broker, to read and to write."),
        click.option("--read-queues", type=numbers, help="Queues that are read, if others."),
        click.option("--write-queues", type=numbers, help="Queues that are written, if others."),
        click.option("--permission", type=click.Choice(list(PERMISSIONS)), help="rw, r or w."),
        click.option("--attribute", "attributes", metavar="NAME=VALUE", multiple=True,
                     help="As message.type=FIFO; without a value it is removed."),
        click.option("--cluster", help="Only on the brokers of this cluster."),
        click.option("--broker", help="Only on this broker."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _attributes(words: tuple[str, ...]) -> dict[str, str | None]:
    pairs = [word.partition("=") for word in words]
    if not all(name and equals for name, equals, _ in pairs):
        raise click.UsageError("--attribute is NAME=VALUE, for instance message.type=FIFO")
    return {name: value or None for name, _, value in pairs}


@topic.command("create")
@click.argument("name", metavar="TOPIC")
@_queue_options
@click.option("--order", is_flag=True, help="Fix its queues, so that keys stay in order.")
@namesrv_option
@output_option
def create(
    name: str,
    queues: int | None,
    read_queues: int | None,
    write_queues: int | None,
    permission: str | None,
    attributes: tuple[str, ...],
    cluster: str | None,
    broker: str | None,
    order: bool,
    namesrv: str | None,
    output: str,
) -> None:
    """Make TOPIC on every broker, or on those named; 8 queues unless you say otherwise."""
    wanted = _attributes(attributes)

    async def run() -> Configs:
        async with Admin(namesrv) as admin:
            if broker is None and name in await _all_configs(admin):
                raise ClientError(f"topic {name!r} exists; `gantry topic update` changes it")
            await admin.create_topic(
                name,
                queues=queues or 8,
                read_queues=read_queues,
                write_queues=write_queues,
                perm=PERMISSIONS[permission or "rw"],
                order=order,
                attributes=wanted,
                cluster=cluster,
                broker=broker,
            )
            return (await _all_configs(admin))[name]

    _print_changed(name, asyncio.run(run()), output)


@topic.command("update")
@click.argument("name", metavar="TOPIC")
@_queue_options
@click.option("--force", is_flag=True, help="Also fewer queues to read: what lies there is hidden.")
@namesrv_option
@output_option
def update(
    name: str,
    queues: int | None,
    read_queues: int | None,
    write_queues: int | None,
    permission: str | None,
    attributes: tuple[str, ...],
    cluster: str | None,
    broker: str | None,
    force: bool,
    namesrv: str | None,
    output: str,
) -> None:
    """Change TOPIC; what is not named stays as each broker has it."""
    reads, writes = read_queues or queues, write_queues or queues
    wanted = _attributes(attributes)
    if reads is None and writes is None and permission is None and not wanted:
        raise click.UsageError("say what to change, for instance --queues 16")

    async def run() -> Configs:
        async with Admin(namesrv) as admin:
            await check_topic(admin, name)
            masters = await admin.masters(cluster=cluster, broker=broker)
            before = (await _all_configs(admin))[name]
            for each in sorted(masters.keys() & before.keys()):
                config = before[each]
                if reads is not None and reads < config.read_queue_nums and not force:
                    raise ClientError(
                        f"{name!r} has {counted(config.read_queue_nums, 'queue')} to read on "
                        f"{each}: fewer hide what lies in the others; `gantry topic shrink` waits "
                        "until they are read, --force does not"
                    )
                await admin.create_topic(
                    name,
                    read_queues=reads or config.read_queue_nums,
                    write_queues=writes or config.write_queue_nums,
                    perm=PERMISSIONS[permission] if permission else config.perm,
                    order=config.order,
                    attributes=wanted,
                    broker=each,
                )
            return (await _all_configs(admin))[name]

    _print_changed(name, asyncio.run(run()), output)


@topic.command("delete")
@click.argument("name", metavar="TOPIC")
@click.option("--cluster", help="Only on the brokers of this cluster.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@namesrv_option
def delete(name: str, cluster: str | None, yes: bool, namesrv: str | None) -> None:
    """Delete TOPIC with everything that is stored in it."""

    async def look(admin: Admin) -> str:
        await check_topic(admin, name)
        known = await _all_configs(admin)
        if _is_internal(name, known) and not _is_left_over(name):
            raise belongs_to_brokers(name)
        if name not in known:
            return "its route in the name servers: no broker has it"
        try:
            rows, groups = await admin.topic_stats(name), await admin.topic_groups(name)
        except BrokerRefused as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            # The route names a broker that lost the topic, and that has nothing to count.
            return f"all that {', '.join(known[name])} stored in it"
        stored = sum(row.max_offset - row.min_offset for row in rows.values())
        return counted(stored, "message") + (f", read by {', '.join(groups)}" if groups else "")

    async def run(admin: Admin) -> None:
        await admin.delete_topic(name, cluster=cluster)

    delete_confirmed(f"topic {name}", look, run, namesrv=namesrv, yes=yes)


async def _all_configs(admin: Admin, *, cluster: str | None = None) -> dict[str, Configs]:
    """Every topic and what each master knows about it, sorted."""
    found: dict[str, Configs] = {}
    for broker, address in sorted((await admin.masters(cluster=cluster)).items()):
        for name, config in (await admin.topic_configs(address)).items():
            found.setdefault(name, {})[broker] = config
    return dict(sorted(found.items()))


def _is_internal(name: str, known: dict[str, Configs]) -> bool:
    """Topics that no user made: the system's, retries, dead letters, those named like brokers."""
    brokers = {broker for each in known.values() for broker in each}
    return (
        is_system_topic(name)
        or _is_left_over(name)
        or name in brokers
        or name.endswith("_REPLY_TOPIC")
        or f"{name}_REPLY_TOPIC" in known
    )


def _is_left_over(name: str) -> bool:
    return name.startswith((RETRY_PREFIX, DEAD_PREFIX))


def _list_row(name: str, configs: Configs) -> Row:
    def of_all(values: list[Any]) -> Any:
        return values[0] if len(set(values)) == 1 else "/".join(map(str, values))

    each = list(configs.values())
    row: Row = {
        "topic": name,
        "readQueues": of_all([config.read_queue_nums for config in each]),
        "writeQueues": of_all([config.write_queue_nums for config in each]),
        "permission": of_all([permission_text(config.perm) for config in each]),
        "order": of_all([config.order for config in each]),
        "brokers": list(configs),
    }
    return row


def _broker_row(broker: str, config: TopicConfig) -> Row:
    return {
        "broker": broker,
        "readQueues": config.read_queue_nums,
        "writeQueues": config.write_queue_nums,
        "permission": permission_text(config.perm),
        "order": config.order,
        **({"attributes": config.attributes} if config.attributes else {}),
    }


def _queue_row(queue: Queue, row: TopicOffset, people: bool) -> Row:
    return {
        "broker": queue.broker_name,
        "queueId": queue.queue_id,
        "first": row.min_offset,
        "next": row.max_offset,
        "stored": row.max_offset - row.min_offset,
        "lastStored": shown_or_ms(row.last_update_timestamp, people),
    }


def _print_changed(name: str, configs: Configs, output: str) -> None:
    rows = [_broker_row(broker, config) for broker, config in configs.items()]
    print_rows([{"topic": name, **row} for row in rows], output)


@topic.command("shrink")
@click.argument("name")
@click.option("--queues", type=click.IntRange(1), required=True, help="Queues a broker afterwards.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds to wait for readers.")
@namesrv_option
def shrink(name: str, queues: int, timeout: float, namesrv: str | None) -> None:
    """Give topic NAME fewer queues: write queues first, read queues once they are empty."""

    async def run() -> None:
        async with Admin(namesrv) as admin:
            await shrink_topic(
                admin,
                name,
                queues,
                timeout=timeout,
                say=lambda line: print(line, file=sys.stderr, flush=True),
            )

    try:
        asyncio.run(run())
    except GantryError as error:
        fail(error)


@topic.command("spread")
@click.argument("name", metavar="TOPIC")
@click.option("--to", "to", required=True, metavar="NEW", help="The wider topic; made if missing.")
@click.option("--queues", type=click.IntRange(1), required=True, help="Queues of NEW, a broker.")
@click.option("--group", required=True, help="Whose unread messages are moved.")
@click.option(
    "--rate",
    type=ABOVE_0,
    default=RATE_DEFAULT,
    show_default=True,
    help="Messages a second, at most.",
)
@click.option(
    "--keyless",
    type=click.Choice(["spread", "queue", "keys"]),
    help="Where messages without a sharding key go: anywhere (default), where their "
    "queue goes (default of order topics), or by their first key.",
)
@click.option("--force", is_flag=True, help="Also while members of the group read TOPIC.")
@click.option("--dry-run", is_flag=True, help="Only show what would be moved.")
@namesrv_option
@output_option
def spread(
    name: str,
    to: str,
    queues: int,
    group: str,
    rate: float,
    keyless: Keyless | None,
    force: bool,
    dry_run: bool,
    namesrv: str | None,
    output: str,
) -> None:
    """Move what waits for a group in TOPIC into a wider topic, so that more consumers share it.

    Messages with one sharding key stay in order. Progress of the group on TOPIC follows the
    copies: stopped at any time, the same command goes on.
    """

    async def run() -> list[SpreadRow]:
        async with Admin(namesrv) as admin:
            work = Spread(
                admin,
                name,
                group=group,
                to=to,
                queues=queues,
                rate=rate,
                keyless=keyless,
                force=force,
                say=lambda line: print(line, file=sys.stderr, flush=True),
            )
            return await (work.plan() if dry_run else work.run())

    try:
        rows = asyncio.run(run())
    except KeyboardInterrupt:
        print("stopped: the same command goes on where it was", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except GantryError as error:
        fail(error)
    else:
        print_rows([_spread_row(row, dry_run) for row in rows], output)
        _say_next(rows, to, group, dry_run)


def _spread_row(row: SpreadRow, dry_run: bool) -> Row:
    found: Row = {
        "broker": row.queue.broker_name, "queueId": row.queue.queue_id, "from": row.start,
        "to": row.end, "waiting": row.waiting,
    }  # fmt: skip
    return found if dry_run else {**found, "moved": row.moved, "skipped": row.skipped}


def _say_next(rows: list[SpreadRow], to: str, group: str, dry_run: bool) -> None:
    if dry_run:
        waiting = sum(row.waiting for row in rows)
        print(f"{counted(waiting, 'message')} would be moved", file=sys.stderr)
        return
    moved, skipped = sum(row.moved for row in rows), sum(row.skipped for row in rows)
    print(
        f"{counted(moved, 'message')} moved to {to}, {skipped} had been before: "
        f"let {group} subscribe to {to}",
        file=sys.stderr,
    )
