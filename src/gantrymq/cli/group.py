"""`gantry group`: list, show, change and delete consumer groups."""

import asyncio
import sys
from typing import Any

import click
import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.deletion import delete_confirmed
from gantrymq.cli.common.known import check_group
from gantrymq.cli.common.output import (
    Row,
    fail,
    namesrv_option,
    output_option,
    print_listed,
    print_rows,
)
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.group_deletion import (
    check_group_deletable,
    delete_group_and_retries,
)
from gantrymq.client.admin.groups.group_settings import (
    INTERNAL_GROUPS,
    Settings,
    change_settings,
    settings,
)
from gantrymq.client.core.errors import ClientError
from gantrymq.model import GroupConfig
from gantrymq.protocol.bodies import ConsumerConnections

RETRY_QUEUES_MAX = 65_536
HIDDEN = ("groupName", "groupSysFlag", "groupRetryPolicy", "attributes", "consumeTimeoutMinute")
"""Fields that tables leave out and JSON has."""


@click.group("group")
def group() -> None:
    """List, show, change and delete consumer groups."""


@group.command("list")
@click.option("--all", "everything", is_flag=True, help="Include groups of brokers and tools.")
@namesrv_option
@output_option
def list_groups(everything: bool, namesrv: str | None, output: str) -> None:
    """List all consumer groups with the number of members and their settings."""

    async def run() -> tuple[Settings, dict[str, int]]:
        async with Admin(namesrv) as admin:
            found = await settings(admin)
            names = [name for name in found if everything or not name.startswith(INTERNAL_GROUPS)]
            members = [len((await admin.consumers(name)).connection_set) for name in names]
            return found, dict(zip(names, members, strict=True))

    found, members = asyncio.run(run())
    print_rows([_list_row(name, found[name], count) for name, count in members.items()], output)
    print_listed(len(members), "group", hidden=len(found) - len(members))


@group.command("members")
@click.argument("name", metavar="GROUP")
@namesrv_option
@output_option
def members(name: str, namesrv: str | None, output: str) -> None:
    """List the connected members of GROUP and their subscriptions."""

    async def run() -> ConsumerConnections:
        async with Admin(namesrv) as admin:
            await check_group(admin, name)
            return await admin.consumers(name)

    found = asyncio.run(run())
    topics = [f"{t}:{s.sub_string}" for t, s in sorted(found.subscription_table.items())]
    rows: list[Row] = [
        {
            "clientId": member.client_id,
            "address": member.client_addr,
            "language": member.language,
            "version": member.version,
            "model": found.message_model,
            "type": found.consume_type,
            "subscriptions": topics,
        }
        for member in sorted(found.connection_set, key=lambda member: member.client_id)
    ]
    print_rows(rows, output)
    print(f"{name}: {counted(len(rows), 'member')}", file=sys.stderr)


@group.command("delete")
@click.argument("name", metavar="GROUP")
@click.option("--dead-letters", is_flag=True, help="Also delete its dead letters.")
@click.option("--force", is_flag=True, help="Also while members are connected.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@namesrv_option
def delete(name: str, dead_letters: bool, force: bool, yes: bool, namesrv: str | None) -> None:
    """Delete GROUP: its settings, its progress and its retry topic.

    Dead letters stay unless --dead-letters is given.
    """

    async def look(admin: Admin) -> str:
        await check_group(admin, name)
        await check_group_deletable(admin, name, force=force)
        return "its progress"

    async def run(admin: Admin) -> None:
        await delete_group_and_retries(admin, name, with_dead_letters=dead_letters)

    delete_confirmed(f"group {name}", look, run, namesrv=namesrv, yes=yes)


def _list_row(name: str, brokers: dict[str, GroupConfig], members: int) -> Row:
    first = next(iter(brokers.values()))
    return {
        "group": name,
        "members": members,
        "consume": all(config.consume_enable for config in brokers.values()),
        "broadcast": first.consume_broadcast_enable,
        "retries": first.retry_max_times,
        "retryQueues": first.retry_queue_nums,
        "brokers": list(brokers),
    }


@group.command("show")
@click.argument("name", metavar="[GROUP]", required=False)
@namesrv_option
@output_option
def show(name: str | None, namesrv: str | None, output: str) -> None:
    """Show the settings of GROUP, or of all groups, on each broker."""

    async def run() -> Settings:
        async with Admin(namesrv) as admin:
            found = await settings(admin)
            if name is not None and name not in found:
                await check_group(admin, name)
                raise ClientError(f"no broker has settings of group {name!r}; its messages remain")
            return found if name is None else {name: found[name]}

    try:
        found = asyncio.run(run())
    except GantryError as error:
        fail(error)
    else:
        _print(found, output)


@group.command("set")
@click.argument("name", metavar="GROUP")
@click.option(
    "--consume/--no-consume",
    "consume_enable",
    default=None,
    help="Whether the group may consume.",
)
@click.option(
    "--broadcast/--no-broadcast",
    "consume_broadcast_enable",
    default=None,
    help="Whether members may consume in broadcasting mode.",
)
@click.option(
    "--retries",
    "retry_max_times",
    type=click.IntRange(0),
    default=None,
    help="Retries before a message becomes a dead letter, unless a member sets a limit.",
)
@click.option(
    "--retry-queues",
    "retry_queue_nums",
    type=click.IntRange(0, RETRY_QUEUES_MAX),
    default=None,
    help="Queues of its retry topic; the number only grows. 0: messages sent back are lost.",
)
@click.option(
    "--notify/--no-notify",
    "notify_consumer_ids_changed_enable",
    default=None,
    help="Whether members are told at once when one joins or leaves.",
)
@click.option(
    "--orderly/--no-orderly",
    "consume_message_orderly",
    default=None,
    help="Stored for clients of 5.x.",
)
@click.option(
    "--from-min/--no-from-min",
    "consume_from_min_enable",
    default=None,
    help="Stored; brokers do not use it.",
)
@click.option(
    "--read-from",
    "broker_id",
    type=click.IntRange(0),
    default=None,
    metavar="ID",
    help="Broker id to read from; matters with slaves.",
)
@click.option(
    "--when-slow",
    "which_broker_when_consume_slowly",
    type=click.IntRange(0),
    default=None,
    metavar="ID",
    help="Broker id to suggest to a group with much lag; matters with slaves.",
)
@click.option("--cluster", help="Only on the brokers of this cluster.")
@click.option("--broker", help="Only on this broker.")
@namesrv_option
@output_option
def change(
    name: str,
    cluster: str | None,
    broker: str | None,
    namesrv: str | None,
    output: str,
    **wanted: Any,
) -> None:
    """Change settings of GROUP on every broker; what is not given stays as it is.

    A group that a broker does not know is created.
    """
    changes = {field: value for field, value in wanted.items() if value is not None}
    if not changes:
        raise click.UsageError("say what to change, for instance --retries 5")

    async def run() -> dict[str, GroupConfig]:
        async with Admin(namesrv) as admin:
            return await change_settings(admin, name, changes, cluster=cluster, broker=broker)

    try:
        found = asyncio.run(run())
    except GantryError as error:
        fail(error)
    else:
        _print({name: found}, output)
        for line in _warnings(changes):
            print(line, file=sys.stderr)


def _print(found: Settings, output: str) -> None:
    print_rows(
        [
            _row(name, broker, config, output == "table")
            for name, brokers in found.items()
            for broker, config in brokers.items()
        ],
        output,
    )


def _row(name: str, broker: str, config: GroupConfig, people: bool) -> Row:
    fields: Row = msgspec.to_builtins(config)
    shown = {field: fields[field] for field in fields if not (people and field in HIDDEN)}
    shown.pop("groupName", None)
    return {"group": name, "broker": broker, **shown}


def _warnings(changes: dict[str, Any]) -> list[str]:
    said = []
    if changes.get("retry_queue_nums") == 0:
        said.append("no retry queues: what members give back is dropped, not even a dead letter")
    if changes.get("consume_enable") is False:
        said.append("members keep running and ask in vain, until --consume")
    return said
