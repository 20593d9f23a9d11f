"""What a member of a raft group is told once. Pure."""

from typing import Final

import msgspec

APPEND_BYTES_MAX: Final = 1 << 20


class RaftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while a member runs."""

    group: str
    me: str
    members: tuple[str, ...]
    """All of them, this one included; the same on every member."""
    election_ticks: int = 10
    """A follower that hears nothing for one to two times as long wants an election."""
    heartbeat_ticks: int = 1
    append_bytes_max: int = APPEND_BYTES_MAX
    inflight_bytes_max: int = 16 << 20
    pre_vote: bool = True
    check_quorum: bool = True
    """A leader that hears no majority steps down, and who hears a leader votes for nobody else."""

    def __post_init__(self) -> None:
        if self.me not in self.members or len(set(self.members)) != len(self.members):
            raise ValueError(f"{self.me} has to be once in the members {self.members}")
