"""`gantry group list`, `members` and `delete`."""

import asyncio
import sys

import click

from gantrymq.base.words import counted
from gantrymq.cli.deleting import belongs_to_brokers, delete_confirmed
from gantrymq.cli.known import check_group
from gantrymq.cli.output import Row, namesrv_option, output_option, print_listed, print_rows
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.group_settings import Settings, settings
from gantrymq.client.core.errors import ClientError
from gantrymq.model import GroupConfig, dead_topic, retry_topic
from gantrymq.protocol.bodies import ConsumerConnections

INTERNAL = ("TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_", "CID_ONS", "CID_RMQ_SYS_")
"""How the names of groups begin that brokers make for themselves and for tools."""


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Also the groups of brokers and tools.")
@namesrv_option
@output_option
def list_groups(everything: bool, namesrv: str | None, output: str) -> None:
    """All consumer groups: how many members run, and what brokers allow them."""

    async def run() -> tuple[Settings, dict[str, int]]:
        async with Admin(namesrv) as admin:
            found = await settings(admin)
            names = [name for name in found if everything or not name.startswith(INTERNAL)]
            members = [len((await admin.consumers(name)).connection_set) for name in names]
            return found, dict(zip(names, members, strict=True))

    found, members = asyncio.run(run())
    print_rows([_list_row(name, found[name], count) for name, count in members.items()], output)
    print_listed(len(members), "group", hidden=len(found) - len(members))


@click.command("members")
@click.argument("name", metavar="GROUP")
@namesrv_option
@output_option
def members(name: str, namesrv: str | None, output: str) -> None:
    """The members of GROUP that are connected, and what they subscribe to."""

    async def run() -> ConsumerConnections:
        async with Admin(namesrv) as admin:
            await check_group(admin, name)
            return await admin.consumers(name)

    found = asyncio.run(run())
    topics = [f"{t}:{s.sub_string}" for t, s in sorted(found.subscription_table.items())]
    rows: list[Row] = [
        {
            "clientId": member.client_id, "address": member.client_addr,
            "language": member.language, "version": member.version,
            "model": found.message_model, "type": found.consume_type, "subscriptions": topics,
        }
        for member in sorted(found.connection_set, key=lambda member: member.client_id)
    ]  # fmt: skip
    print_rows(rows, output)
    print(f"{name}: {counted(len(rows), 'member')}", file=sys.stderr)


@click.command("delete")
@click.argument("name", metavar="GROUP")
@click.option("--dead-letters", is_flag=True, help="Delete its dead letters as well.")
@click.option("--force", is_flag=True, help="Also while members of it run.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@namesrv_option
def delete(name: str, dead_letters: bool, force: bool, yes: bool, namesrv: str | None) -> None:
    """Delete GROUP: its settings, its progress and what waits to be tried again.

    Dead letters stay unless --dead-letters is given.
    """

    async def look(admin: Admin) -> str:
        await check_group(admin, name)
        if name.startswith(INTERNAL):
            raise belongs_to_brokers(name)
        running = len((await admin.consumers(name)).connection_set)
        if running and not force:
            raise ClientError(
                f"{counted(running, 'member')} of {name} still run{'s' if running == 1 else ''}: "
                "stop them first, or use --force"
            )
        return "its progress"

    async def run(admin: Admin) -> None:
        await admin.delete_group(name, with_offsets=True)
        left = {retry_topic(name)} | ({dead_topic(name)} if dead_letters else set())
        for topic in sorted(left & set(await admin.topics())):
            await admin.delete_topic(topic)

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
