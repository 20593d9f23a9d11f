"""Copies of a broker: slaves and masters about each other, and leadership of a raft group."""

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
    report_ms: int = 5_000
    """How often it reports, also when its log does not grow."""


class IntroduceSlaveResponse(Header, frozen=True, kw_only=True):
    """What the master promises."""

    heartbeat_ms: int = 0
    """How often it sends a heartbeat, if it has nothing else to send; 0 for no promise."""


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


class MinBrokerIdRequest(Header, frozen=True, kw_only=True):
    """NOTIFY_MIN_BROKER_ID_CHANGE: which member of a broker name answers for it now."""

    min_broker_id: int | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


class HaInfo(Header, frozen=True, kw_only=True):
    """EXCHANGE_BROKER_HA_INFO, question and answer: where a slave finds its master."""

    master_ha_address: str | None = None
    master_flush_offset: int | None = None
    master_address: str | None = None


class FlushOffsetRequest(Header, frozen=True, kw_only=True):
    """RESET_MASTER_FLUSH_OFFSET."""

    master_flush_offset: int


class RoleChangeRequest(Header, frozen=True, kw_only=True):
    """NOTIFY_BROKER_ROLE_CHANGED: what a controller decided."""

    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    master_broker_id: int | None = None
