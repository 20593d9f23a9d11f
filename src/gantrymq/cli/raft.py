"""`gantry raft`: the members of raft groups, and a change of their leader."""

import asyncio
import sys

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand, describe
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.protocol.bodies import RaftStatus

CHANGE_SECONDS_MAX = 10.0
LOOK_SECONDS = 0.1


@click.group("raft")
def raft() -> None:
    """Show raft groups, and hand leadership on."""


@raft.command("status", cls=GuardedCommand)
@namesrv_option
@output_option
def status(namesrv: str | None, output: str) -> None:
    """Show the members of every raft group: who leads, and how far the others are.

    The exit code is 1 when a group has no leader, or a member does not answer or has a trouble.
    """

    async def run() -> list[Row]:
        async with Admin(namesrv) as admin:
            return [row for group in (await _groups(admin)).values() for row in _rows(group)]

    rows = asyncio.run(run())
    print_rows(rows, output)
    groups = {row["group"] for row in rows}
    led = {row["group"] for row in rows if row["serves"]}
    said = f"{counted(len(groups), 'raft group')}, {counted(len(rows), 'member')}"
    print(said, file=sys.stderr)
    for group in sorted(groups - led, key=str):
        print(f"{group} has no leader: nothing can be sent to it", file=sys.stderr)
    if groups - led or any(row["trouble"] for row in rows):
        raise SystemExit(1)


@raft.command("transfer", cls=GuardedCommand)
@click.argument("group")
@click.option("--to", "member", metavar="ID", help="The next leader; else the one that holds most.")
@namesrv_option
def transfer(group: str, member: str | None, namesrv: str | None) -> None:
    """Hand the leadership of a raft GROUP to another member; nothing is lost.

    Returns when the next leader serves.
    """

    async def run() -> str:
        async with Admin(namesrv) as admin:
            before = _leader_of(await _groups(admin), group)
            await admin.transfer_raft_leadership(_address_of(before), member)
            async with asyncio.timeout(CHANGE_SECONDS_MAX):
                while True:
                    await asyncio.sleep(LOOK_SECONDS)
                    found = (await _groups(admin)).get(group, {})
                    for each in found.values():
                        if isinstance(each, RaftStatus) and each.serves and each.term > before.term:
                            return each.me

    try:
        leader = asyncio.run(run())
    except TimeoutError:
        raise GantryError(
            f"{group} has no new leader after {CHANGE_SECONDS_MAX:g} s: look at gantry raft status"
        ) from None
    print(f"{leader} leads {group} now")


async def _groups(admin: Admin) -> dict[str, dict[str, RaftStatus | str]]:
    """By the name of each raft group and the address of each member: its status, or its trouble."""
    groups: dict[str, dict[str, RaftStatus | str]] = {}
    for name, members in (await admin.members()).items():
        for address in members.values():
            try:
                found = await admin.raft_status(address)
            except BrokerRefused:
                continue  # a broker of its own, or one of RocketMQ's
            except GantryError as error:
                groups.setdefault(name, {})[address] = describe(error)
            else:
                groups.setdefault(found.group, {})[address] = found
    return {
        group: answers
        for group, answers in groups.items()
        if any(isinstance(answer, RaftStatus) for answer in answers.values())
    }


def _leader_of(groups: dict[str, dict[str, RaftStatus | str]], group: str) -> RaftStatus:
    if group not in groups:
        known = ", ".join(sorted(groups)) or "none"
        raise GantryError(f"there is no raft group {group}; name servers know {known}")
    for answer in groups[group].values():
        if isinstance(answer, RaftStatus) and answer.serves:
            return answer
    raise GantryError(f"{group} has no leader now: wait for its election, or start its members")


def _address_of(status: RaftStatus) -> str:
    return next(member.address for member in status.members if member.id == status.me)


def _rows(answers: dict[str, RaftStatus | str]) -> list[Row]:
    """A row for each member that name servers know, and one for each other that the leader has."""
    found = [answer for answer in answers.values() if isinstance(answer, RaftStatus)]
    latest = max(found, key=lambda answer: (answer.serves, answer.term))
    by_id = {answer.me: answer for answer in found}
    rows: list[Row] = []
    for member in latest.members:
        own = by_id.get(member.id)
        silent = answers.get(member.address)
        trouble = own.trouble if own is not None else silent if isinstance(silent, str) else "down"
        rows.append(
            {
                "group": latest.group,
                "id": member.id,
                "role": own.role if own is not None else None,
                "serves": own.serves if own is not None else False,
                "term": own.term if own is not None else None,
                "leader": own.leader if own is not None else None,
                "logEnd": own.log_end if own is not None else None,
                "committed": own.committed if own is not None else None,
                "behindBytes": max(0, latest.log_end - own.log_end) if own is not None else None,
                "mayVote": own.may_vote if own is not None else None,
                "address": member.address,
                "trouble": trouble or None,
            }
        )
    return rows
