"""The members of every broker name: roles, copies and figures, as they say themselves."""

import asyncio
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from gantrymq.base.errors import GantryError
from gantrymq.base.network import split_address
from gantrymq.client.admin.admin import Admin
from gantrymq.protocol.bodies import HaConnectionInfo, HaStatus, RaftStatus

MASTER_ID: Final = 0


@dataclass(frozen=True, kw_only=True)
class MemberStanding:
    """One member of a broker name. What nobody knows is None."""

    cluster: str | None
    broker: str
    id: int
    address: str
    trouble: GantryError | None = None
    """Why it does not answer; then the figures are None."""
    version: str | None = None
    boot_ms: int | None = None
    in_per_second: float | None = None
    out_per_second: float | None = None
    stored_today: int | None = None
    disk_used_percent: int | None = None
    permission: str | None = None
    slaves_in_sync: int | None = None
    """Of a master."""
    in_sync: bool | None = None
    """Of a slave: whether its master counts it among those."""
    behind_bytes: int | None = None
    raft: RaftStatus | None = None
    """Of a member of a raft group."""

    @property
    def role(self) -> str:
        return "slave" if self.id else "master"


@dataclass(frozen=True)
class _Said:
    """What a member said; without figures the error says why."""

    figures: dict[str, str]
    config: dict[str, str]
    copies: HaStatus | None = None
    """None if it does not know the question, as RocketMQ 4.9 does not."""
    raft: RaftStatus | None = None
    trouble: GantryError | None = None


async def member_states(admin: Admin) -> list[MemberStanding]:
    """Ask all members of all brokers; the master of each broker name comes first."""
    info = await admin.cluster()
    clusters = {name: group for group, names in info.cluster_addr_table.items() for name in names}
    rows: list[MemberStanding] = []
    for name, members in (await admin.members()).items():
        asked = await asyncio.gather(*(_ask(admin, address) for address in members.values()))
        answers = dict(zip(members, asked, strict=True))
        rows += [
            _state(clusters.get(name), name, each, members, answers) for each in sorted(members)
        ]
    return rows


async def _ask(admin: Admin, address: str) -> _Said:
    try:
        figures = await admin.broker_runtime(address)
        config = await admin.broker_config(address)
    except GantryError as error:
        return _Said({}, {}, trouble=error)
    copies = raft = None
    try:
        copies = await admin.ha_status(address)
        if config.get("enableDLegerCommitLog") == "true":
            raft = await admin.raft_status(address)
    except GantryError:
        pass  # an older server, or DLedger of RocketMQ, which does not know the question
    return _Said(figures, config, copies, raft)


def _state(
    cluster: str | None, broker: str, number: int, members: dict[int, str], said: dict[int, _Said]
) -> MemberStanding:
    own = said[number]
    if own.trouble is not None:
        return MemberStanding(
            cluster=cluster, broker=broker, id=number, address=members[number], trouble=own.trouble
        )
    found = own.figures
    synced, in_sync, behind = _copy_state(number, members, said)
    return MemberStanding(
        cluster=cluster,
        broker=broker,
        id=number,
        address=members[number],
        version=found.get("brokerVersionDesc"),
        boot_ms=int(found.get("bootTimestamp", 0)),
        in_per_second=_first(found.get("putTps")),
        out_per_second=_first(found.get("getTransferredTps") or found.get("getTransferedTps")),
        stored_today=_difference(found, "msgPutTotalTodayNow", "msgPutTotalTodayMorning"),
        disk_used_percent=_percent(found.get("commitLogDiskRatio")),
        permission=own.config.get("brokerPermission"),
        slaves_in_sync=synced,
        in_sync=in_sync,
        behind_bytes=behind,
        raft=own.raft,
    )


def _copy_state(
    number: int, members: dict[int, str], said: dict[int, _Said]
) -> tuple[int | None, bool | None, int | None]:
    """Of a master how many slaves are in sync; of a slave whether its master counts it as one,
    and how far it is behind. None if nobody knows."""
    own = said[number].copies
    if own is None:
        return None, None, None
    if number == MASTER_ID:
        return own.in_sync_slave_nums, None, None
    head, link = said.get(MASTER_ID), own.ha_client_runtime_info
    if link.activated is not True or head is None or head.copies is None:
        return None, False, None
    behind = max(0, head.copies.master_commit_log_max_offset - link.max_offset)
    seen = _seen_by_master(number, members, head.copies.ha_connection_info)
    return None, seen.in_sync if seen else None, behind


def _seen_by_master(
    number: int, members: dict[int, str], rows: list[HaConnectionInfo]
) -> HaConnectionInfo | None:
    """What the master says of one slave.

    Our masters name the slaves that have introduced themselves. Of another one they know the host
    only, so it is found if it is the only slave there.
    """
    for row in rows:
        if row.broker_id == number:
            return row
    named = {row.broker_id for row in rows}
    host = split_address(members[number])[0]
    there = [
        each
        for each, address in members.items()
        if each and each not in named and split_address(address)[0] == host
    ]
    found = [
        row
        for row in rows
        if row.broker_id is UNSET and split_address(row.addr.lstrip("/"))[0] == host
    ]
    return found[0] if len(there) == len(found) == 1 else None


def _first(rates: str | None) -> float | None:
    """RocketMQ gives rates of 10 s, 1 min and 10 min in one text."""
    return round(float(rates.split()[0]), 1) if rates and rates.split() else None


def _difference(figures: dict[str, str], now: str, morning: str) -> int | None:
    return int(figures[now]) - int(figures[morning]) if {now, morning} <= figures.keys() else None


def _percent(ratio: str | None) -> int | None:
    return round(float(ratio) * 100) if ratio else None
