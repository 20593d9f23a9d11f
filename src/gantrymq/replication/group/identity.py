"""Who the members of a raft group are. Pure."""

import re
from typing import Final

import msgspec

from gantrymq.base.errors import ConfigError

_PEER: Final = re.compile(r"(n\d+)-(\[[^]]+\]|[^:]+):(\d+)\Z")


class GroupIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A group as each of its members has it in its settings."""

    group: str
    me: str
    addresses: dict[str, tuple[str, int]]
    """The raft port of each member, this one included."""

    @property
    def members(self) -> tuple[str, ...]:
        """The ids of all members, sorted."""
        return tuple(sorted(self.addresses))

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if name != self.me)

    @property
    def number(self) -> int:
        """The number in this member's id: 0 of n0."""
        return int(self.me[1:])


def parse_peers(text: str) -> dict[str, tuple[str, int]]:
    """`n0-host:port;n1-host:port;...` as RocketMQ writes it in dLegerPeers."""
    found: dict[str, tuple[str, int]] = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        match = _PEER.match(part)
        if match is None or int(match[3]) > 65_535:
            raise ConfigError(
                f"dLegerPeers: {part!r} is no member; write n0-host:port;n1-host:port;n2-host:port"
            )
        name, address = match[1], (match[2].strip("[]"), int(match[3]))
        if name in found:
            raise ConfigError(f"dLegerPeers names {name} twice; give every member its own id")
        if address in found.values():
            raise ConfigError(f"dLegerPeers has the address of {part!r} twice")
        found[name] = address
    return found


def group_identity(group: str, peers: str, me: str) -> GroupIdentity:
    """The group of the settings dLegerGroup, dLegerPeers and dLegerSelfId; ConfigError says why."""
    addresses = parse_peers(peers)
    if not group:
        raise ConfigError("dLegerGroup is empty; give the raft group a name")
    if me not in addresses:
        known = ", ".join(sorted(addresses)) or "nobody"
        raise ConfigError(
            f"dLegerSelfId={me or '(empty)'} is not in dLegerPeers, which names {known}"
        )
    if len(addresses) not in (1, 3, 5):
        raise ConfigError(
            f"dLegerPeers names {len(addresses)} members: a group has 3 or 5 (1 to try it out); "
            "an even number survives no more losses than one less"
        )
    return GroupIdentity(group=group, me=me, addresses=addresses)
