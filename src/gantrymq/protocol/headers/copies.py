"""Copies of a broker: a slave introduces itself, leadership of a raft group is handed on."""

from gantrymq.protocol.headers.base import Header


class IntroduceSlaveRequest(Header, frozen=True, kw_only=True):
    """INTRODUCE_SLAVE: who the slave is, and what it has of the log."""

    cluster_name: str
    broker_name: str
    broker_id: int
    ha_client: str
    """The address from which its connection to the HA port comes."""
    file_bytes: int
    """Its mappedFileSizeCommitLog."""
    log_end: int
    tail_bytes: int = 0
    """How many bytes before the end the checksum covers."""
    tail_crc: int = 0
    wants_all: bool = False
    """Whether a slave without a log wants the whole log instead of the last file."""


class TransferLeadershipRequest(Header, frozen=True, kw_only=True):
    """TRANSFER_RAFT_LEADERSHIP."""

    to: str = ""
    """The id of the next leader; empty for the member that holds most."""


class CompareLogRequest(Header, frozen=True, kw_only=True):
    """COMPARE_LOG: which bytes of the master's log a slave compares with its own."""

    position: int
    size: int
    """At most COMPARED_BYTES_MAX, within one file; 0 asks for the ends only."""


class CompareLogResponse(Header, frozen=True, kw_only=True):
    """What the master has there."""

    size: int
    """How many of these bytes its log has."""
    crc: int
    """Their CRC32."""
    log_min: int
    """Where its log begins."""
