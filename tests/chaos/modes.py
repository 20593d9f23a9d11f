"""Which servers run together, how they flush and copy, and who leads. Pure.

A mode is a value, so that another way to keep copies is one more row: its members with their
settings, a function that names the leader, and what it promises.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

NAMESRV: Final = "namesrv"
NAMESRV_PORT: Final = 9876
BROKER_PORT: Final = 10911
RAFT_PORT: Final = BROKER_PORT + 3
BROKER_NAME: Final = "broker-a"

Addresses = Mapping[str, str]
"""The host address of each member."""


@dataclass(frozen=True)
class Member:
    """One broker of a mode."""

    name: str
    settings: Callable[[Addresses], Mapping[str, str]]
    """Its settings beyond ports and folders, given where the members are."""


@dataclass(frozen=True)
class Mode:
    """Brokers that run together, with one name server."""

    name: str
    meaning: str
    members: tuple[Member, ...]
    fixed: tuple[str, ...]
    """The nodes of faults with fixed nodes."""
    survives_master: bool
    """Whether SEND_OK means that the message outlives the leader's machine."""
    flushes: bool
    """Whether SEND_OK means that the message is on a disk."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return (NAMESRV, *(member.name for member in self.members))


def leader_of(brokers: Mapping[str, str], addresses: Addresses) -> str | None:
    """The member that takes messages: the one with brokerId 0 at the name server.

    `brokers` has the addresses by broker id, as the name server tells them.
    """
    address = brokers.get("0")
    hosts = {host: name for name, host in addresses.items()}
    return hosts.get(address.rpartition(":")[0]) if address is not None else None


def _member(name: str, broker_id: int, role: str, flush: str) -> Member:
    settings = {
        "brokerName": BROKER_NAME,
        "brokerId": str(broker_id),
        "brokerRole": role,
        "flushDiskType": flush,
    }
    return Member(name, lambda _addresses: settings)


def _pair(name: str, meaning: str, role: str, flush: str) -> Mode:
    members = (_member("master", 0, role, flush), _member("slave", 1, "SLAVE", flush))
    return Mode(name, meaning, members, ("slave",), role == "SYNC_MASTER", flush == "SYNC_FLUSH")


def _group(name: str, meaning: str, flush: str) -> Mode:
    names = ("n0", "n1", "n2")

    def settings_of(me: str) -> Callable[[Addresses], Mapping[str, str]]:
        return lambda addresses: {
            "brokerName": BROKER_NAME,
            "flushDiskType": flush,
            "enableDLegerCommitLog": "true",
            "dLegerGroup": BROKER_NAME,
            "dLegerPeers": ";".join(f"{name}-{addresses[name]}:{RAFT_PORT}" for name in names),
            "dLegerSelfId": me,
        }

    members = tuple(Member(member, settings_of(member)) for member in names)
    return Mode(name, meaning, members, ("n0",), True, flush == "SYNC_FLUSH")


MODES: Final = {
    mode.name: mode
    for mode in (
        _pair("async-master", "ASYNC_MASTER, ASYNC_FLUSH", "ASYNC_MASTER", "ASYNC_FLUSH"),
        _pair("async-master-sync-flush", "ASYNC_MASTER, SYNC_FLUSH", "ASYNC_MASTER", "SYNC_FLUSH"),
        _pair("sync-master", "SYNC_MASTER, ASYNC_FLUSH", "SYNC_MASTER", "ASYNC_FLUSH"),
        _pair("sync-master-sync-flush", "SYNC_MASTER, SYNC_FLUSH", "SYNC_MASTER", "SYNC_FLUSH"),
        _group("raft", "raft group of three, ASYNC_FLUSH", "ASYNC_FLUSH"),
        _group("raft-sync-flush", "raft group of three, SYNC_FLUSH", "SYNC_FLUSH"),
    )
}
