"""The brokers that `gantry up` runs together: so many masters, or one of RocketMQ's modes. Pure.

The modes are RocketMQ's, whose files lie in `conf/`: a folder a mode, a file a broker. They are
here once more because an installed package has no `conf/`; a test compares.
"""

from dataclasses import dataclass
from typing import Final

TRACE: Final = {"traceTopicEnable": "true"}
"""With trace, `gantry why` knows more."""
OF_ALL_MODES: Final = {
    "brokerClusterName": "DefaultCluster",
    "deleteWhen": "04",
    "fileReservedTime": "48",
    "flushDiskType": "ASYNC_FLUSH",
}
OWN_KEYS: Final = (
    "brokerName",
    "brokerId",
    "brokerRole",
    "haListenPort",
    "fastListenPort",
    "haMasterAddress",
    "storePathCommitLog",
    "enableDLegerCommitLog",
    "dLegerGroup",
    "dLegerPeers",
    "dLegerSelfId",
)
"""Settings that differ from broker to broker, so that no file for all may have them."""


@dataclass(frozen=True)
class BrokerSetup:
    """One broker."""

    folder: str
    """The name of its folder below the data folder, and of its file in `conf/`."""
    identity: dict[str, str]
    """Settings that nothing overrides: who it is."""
    defaults: dict[str, str]
    """The first content of its own file, which is the operator's from then on: settings changed by
    a call are written to it, and files given with --config take precedence."""

    @property
    def is_slave(self) -> bool:
        return self.identity.get("brokerRole") == "SLAVE"

    @property
    def member_id(self) -> str | None:
        """Of a member of a raft group: n0, n1, ..."""
        return self.identity.get("dLegerSelfId")

    @property
    def broker_name(self) -> str:
        return self.identity["brokerName"]


def masters(count: int) -> list[BrokerSetup]:
    """So many brokers that know nothing of each other."""
    names = [f"broker-{chr(ord('a') + at)}" if at < 26 else f"broker-{at}" for at in range(count)]
    return [BrokerSetup(name, {"brokerName": name}, TRACE) for name in names]


def _mode_setup(letter: str, role: str) -> BrokerSetup:
    name, is_slave = f"broker-{letter}", role == "SLAVE"
    identity = {"brokerName": name, "brokerId": "1" if is_slave else "0", "brokerRole": role}
    return BrokerSetup(f"{name}-s" if is_slave else name, identity, OF_ALL_MODES | TRACE)


def _two_masters(role: str, *, slaves: bool) -> list[BrokerSetup]:
    """Masters first: they have the lower ports."""
    roles = [role, "SLAVE"] if slaves else [role]
    return [_mode_setup(letter, role) for role in roles for letter in "ab"]


def _raft_group(name: str, count: int) -> list[BrokerSetup]:
    """One broker of several members; the ports of their links are chosen at the start."""
    peers = ";".join(f"n{at}-127.0.0.1:{40_911 + at}" for at in range(count))
    return [
        BrokerSetup(
            f"broker-n{at}",
            {
                "brokerName": name,
                "enableDLegerCommitLog": "true",
                "dLegerGroup": name,
                "dLegerPeers": peers,
                "dLegerSelfId": f"n{at}",
            },
            OF_ALL_MODES | {"brokerClusterName": "RaftCluster"} | TRACE,
        )
        for at in range(count)
    ]


MODES: Final = {
    "2m-noslave": _two_masters("ASYNC_MASTER", slaves=False),
    "2m-2s-async": _two_masters("ASYNC_MASTER", slaves=True),
    "2m-2s-sync": _two_masters("SYNC_MASTER", slaves=True),
    "dledger": _raft_group("RaftNode00", 3),
}
