"""`gantry topic`: list, show, create, change and delete topics."""

import asyncio
import sys
from typing import Any

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.deletion import delete_confirmed
from gantrymq.cli.common.known import check_topic
from gantrymq.cli.common.output import (
    Row,
    namesrv_option,
    output_option,
    print_listed,
    print_rows,
)
from gantrymq.cli.common.times import shown_or_ms
from gantrymq.cli.topic_queues import shrink, spread
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.topics.topic_settings import (
    PERMISSIONS,
    TopicConfigs,
    all_topic_configs,
    change_topic,
    is_internal,
    permission_text,
    what_topic_deletion_loses,
)
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue, TopicConfig
from gantrymq.protocol.bodies import TopicOffset

QUEUES_MAX = 65_536


@click.group("topic")
def topic() -> None:
    """List, show, create, change and delete topics."""


topic.add_command(shrink)
topic.add_command(spread)


@topic.command("list")
@click.option(
    "--all", "everything", is_flag=True, help="Include retry, dead letter and system topics."
)
@click.option("--cluster", help="Only topics on the brokers of this cluster.")
@namesrv_option
@output_option
def list_topics(everything: bool, cluster: str | None, namesrv: str | None, output: str) -> None:
    """List all topics with their queues, permissions and brokers."""

    async def run() -> dict[str, TopicConfigs]:
        async with Admin(namesrv) as admin:
            return await all_topic_configs(admin, cluster=cluster)

    found = asyncio.run(run())
    names = [name for name in found if everything or not is_internal(name, found)]
    chosen = {name: found[name] for name in names}
    print_rows([_list_row(name, each) for name, each in chosen.items()], output)
    print_listed(len(chosen), "topic", hidden=len(found) - len(chosen))


@topic.command("show")
@click.argument("name", metavar="TOPIC")
@namesrv_option
@output_option
def show(name: str, namesrv: str | None, output: str) -> None:
    """Show the queues of TOPIC, how many messages each stores, and the groups that read it."""

    async def run() -> tuple[TopicConfigs, dict[Queue, TopicOffset], list[str]]:
        async with Admin(namesrv) as admin:
            await check_topic(admin, name)
            configs = (await all_topic_configs(admin)).get(name, {})
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
    """Add the options that `create` and `update` share."""
    numbers = click.IntRange(1, QUEUES_MAX)
    options = [
        click.option("--queues", type=numbers, help="Read and write queues on each broker."),
        click.option("--read-queues", type=numbers, help="Read queues, if their number differs."),
        click.option("--write-queues", type=numbers, help="Write queues, if their number differs."),
        click.option(
            "--permission",
            type=click.Choice(list(PERMISSIONS)),
            help="Whether clients may read and write.",
        ),
        click.option(
            "--attribute",
            "attributes",
            metavar="NAME=VALUE",
            multiple=True,
            help="Such as message.type=FIFO; an empty value removes it.",
        ),
        click.option("--cluster", help="Only on the brokers of this cluster."),
        click.option("--broker", help="Only on this broker."),
    ]
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
@click.option(
    "--order", is_flag=True, help="Keep the set of queues fixed, so that keys stay in order."
)
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
    """Create TOPIC on every broker, or on those named; with 8 queues by default."""
    wanted = _attributes(attributes)

    async def run() -> TopicConfigs:
        async with Admin(namesrv) as admin:
            if broker is None and name in await all_topic_configs(admin):
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
            return (await all_topic_configs(admin))[name]

    _print_changed(name, asyncio.run(run()), output)


@topic.command("update")
@click.argument("name", metavar="TOPIC")
@_queue_options
@click.option(
    "--force",
    is_flag=True,
    help="Also reduce read queues; messages in the removed ones become unreadable.",
)
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
    """Change TOPIC; what is not given stays as it is on each broker."""
    reads, writes = read_queues or queues, write_queues or queues
    wanted = _attributes(attributes)
    if reads is None and writes is None and permission is None and not wanted:
        raise click.UsageError("say what to change, for instance --queues 16")

    async def run() -> TopicConfigs:
        async with Admin(namesrv) as admin:
            await check_topic(admin, name)
            await change_topic(
                admin,
                name,
                reads=reads,
                writes=writes,
                perm=PERMISSIONS[permission] if permission else None,
                attributes=wanted,
                cluster=cluster,
                broker=broker,
                force=force,
            )
            return (await all_topic_configs(admin))[name]

    _print_changed(name, asyncio.run(run()), output)


@topic.command("delete")
@click.argument("name", metavar="TOPIC")
@click.option("--cluster", help="Only on the brokers of this cluster.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@namesrv_option
def delete(name: str, cluster: str | None, yes: bool, namesrv: str | None) -> None:
    """Delete TOPIC and all messages in it."""

    async def look(admin: Admin) -> str:
        await check_topic(admin, name)
        return await what_topic_deletion_loses(admin, name)

    async def run(admin: Admin) -> None:
        await admin.delete_topic(name, cluster=cluster)

    delete_confirmed(f"topic {name}", look, run, namesrv=namesrv, yes=yes)


def _list_row(name: str, configs: TopicConfigs) -> Row:
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


def _print_changed(name: str, configs: TopicConfigs, output: str) -> None:
    rows = [_broker_row(broker, config) for broker, config in configs.items()]
    print_rows([{"topic": name, **row} for row in rows], output)
