"""Commands about running consumers: what each member says of itself."""

from pathlib import Path
from typing import Any

from gantrymq.base.errors import GantryError
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.commands.groups import CONSUMER_GROUP, connections
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.running_info import blocked_queues, same_subscriptions, text_of
from gantrymq.cli.mqadmin.values import address
from gantrymq.protocol.versions import version_name

STACKS = AdminOption("s", "jstack", "With the stacks of its threads.", is_flag=True)
MEMBERS = (
    Column("index", "#Index", 10),
    Column("clientId", "#ClientId", 40),
    Column("version", "#Version", 20),
    Column("runningInfoFile", "#ConsumerRunningInfoFile", show=lambda path: path or "-"),
)


@command(
    "consumerStatus",
    "Query consumer's internal data structure.",
    CONSUMER_GROUP,
    AdminOption("i", "clientId", "Only this member; its running info is printed."),
    AdminOption("b", "brokerAddr", "Only members that this broker knows, ip:port.", read=address),
    STACKS,
)
async def consumer_status(call: Invocation) -> None:
    if call["clientId"] is None:
        await _all_members(call, call["brokerAddr"])
        return
    info = await call.admin.running_info(
        call["consumerGroup"], call["clientId"], stacks=call["jstack"]
    )
    call.out.item(plain(info), lambda: text_of(info))


def plain(info: dict[str, Any]) -> dict[str, Any]:
    """Running info for JSON: a table that is keyed by queues becomes a list."""
    queues = [{**dict(key), **row} for key, row in (info.get("mqTable") or {}).items()]
    rest = {key: value for key, value in info.items() if key not in ("mqTable", "mqPopTable")}
    return {**rest, "queues": queues}


@command("consumer", "Query consumer's connection, status, etc.", CONSUMER_GROUP, STACKS)
async def consumer(call: Invocation) -> None:
    await _all_members(call, None)


async def _all_members(call: Invocation, broker: str | None) -> None:
    """Each member's running info goes to a file, as in RocketMQ; then what differs or is stuck."""
    group, now_ms = call["consumerGroup"], call.admin.instance.clock.now_ms()
    found = await connections(call, group, broker)
    row, infos = call.out.table(MEMBERS), dict[str, dict[str, Any]]()
    for at, member in enumerate(found.connection_set, 1):
        place = None
        try:
            info = await call.admin.running_info(group, member.client_id, stacks=call["jstack"])
        except GantryError as error:
            call.out.text(f"{member.client_id}: {error}")
        else:
            infos[member.client_id] = info
            place = _save(f"{now_ms}", member.client_id, info)
        row(at, member.client_id, version_name(member.version), place)
    if not infos:
        return
    same = same_subscriptions(list(infos.values()))
    call.out.text()
    if same:
        call.out.field("sameSubscription", True, "Same subscription in the same group of consumer")
        call.out.text()
        call.out.field("rebalance", "OK", "Rebalance OK")
    else:
        text = "WARN: Different subscription in the same group of consumer!!!"
        call.out.field("sameSubscription", False, text)
    stuck = [
        line for client, info in infos.items() for line in blocked_queues(client, info, now_ms)
    ]
    call.out.field("blocked", stuck, "\n".join(stuck) if stuck else None)


def _save(folder: str, client_id: str, info: dict[str, Any]) -> str:
    """Write running info to a file below the working folder; returns its path."""
    place = Path(folder) / client_id.replace("/", "_")
    place.parent.mkdir(exist_ok=True)
    place.write_text("\n".join(text_of(info)) + "\n")
    return str(place)


COMMANDS = (consumer_status, consumer)
