"""The values that go into the store and come out of it."""

from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec

from gantrymq.kernel import SendRun


class PutStatus(Enum):
    """How storing a message ended. The first four mean that it is stored."""

    PUT_OK = auto()
    FLUSH_DISK_TIMEOUT = auto()
    SLAVE_NOT_AVAILABLE = auto()
    FLUSH_SLAVE_TIMEOUT = auto()
    MESSAGE_ILLEGAL = auto()
    PROPERTIES_SIZE_EXCEEDED = auto()
    SERVICE_NOT_AVAILABLE = auto()
    CREATE_FILE_FAILED = auto()
    PAGECACHE_BUSY = auto()
    UNKNOWN_ERROR = auto()

    @property
    def is_stored(self) -> bool:
        """Whether the message is in the log, flushed and replicated in time or not."""
        return self.value <= PutStatus.FLUSH_SLAVE_TIMEOUT.value


class ReadStatus(Enum):
    """How reading a queue ended."""

    FOUND = auto()
    NO_MATCHED_MESSAGE = auto()
    MESSAGE_WAS_REMOVING = auto()
    OFFSET_FOUND_NULL = auto()
    OFFSET_OVERFLOW_BADLY = auto()
    OFFSET_OVERFLOW_ONE = auto()
    OFFSET_TOO_SMALL = auto()
    NO_MATCHED_LOGIC_QUEUE = auto()
    NO_MESSAGE_IN_QUEUE = auto()


BatchItem = tuple[int, bytes, bytes]
"""Flag, body and properties of one message of a batch."""


def _nobody(append: "Append") -> None:
    """The default reply: no caller waits for the answer."""


class Append(msgspec.Struct, eq=False):
    """One message, or one batch of messages, to be stored.

    The caller fills the first half of the fields; the store fills the rest and then calls `reply`
    once. It is a struct because one is made for every send: a class of its own takes five times as
    long.
    """

    topic: str
    queue_id: int
    body: bytes
    properties: bytes = b""
    flag: int = 0
    sys_flag: int = 0
    born_ms: int = 0
    born_host: bytes = bytes(8)
    reconsume_times: int = 0
    prepared_offset: int = 0
    wait: bool = True
    batch: Sequence[BatchItem] | None = None
    reply: Callable[["Append"], None] = _nobody

    status: PutStatus = PutStatus.UNKNOWN_ERROR
    physical_offset: int = -1
    queue_offset: int = -1
    physical_offsets: Sequence[int] = ()
    store_ms: int = 0
    size: int = 0
    error: str = ""


Staged = Append | SendRun
"""What the store takes: an append, or plain sends that are stored together."""


def count_of(staged: Sequence[Staged]) -> int:
    """How many requests they are: a batch is one, each send of a run is one."""
    return sum([len(each) if isinstance(each, SendRun) else 1 for each in staged])


class ReadResult(msgspec.Struct, frozen=True):
    """The answer to a pull: raw records back to back, the next offset and the queue's range."""

    status: ReadStatus
    next_offset: int
    min_offset: int
    max_offset: int
    count: int = 0
    body: bytes = b""


class QueryResult(msgspec.Struct, frozen=True):
    """Records found by key, in log order, and the last record that is indexed."""

    records: list[bytes]
    last_update_ms: int
    last_update_offset: int
