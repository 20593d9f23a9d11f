"""The values that go into the store and come out of it."""

from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec


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


class Append:
    """One message, or one batch of messages, to be stored.

    The caller fills the first half of the fields; the store fills the rest and then calls `reply`
    once.
    """

    __slots__ = (
        "batch",
        "body",
        "born_host",
        "born_ms",
        "error",
        "flag",
        "physical_offset",
        "physical_offsets",
        "prepared_offset",
        "properties",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "reply",
        "size",
        "status",
        "store_ms",
        "sys_flag",
        "topic",
        "wait",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        *,
        properties: bytes = b"",
        flag: int = 0,
        sys_flag: int = 0,
        born_ms: int = 0,
        born_host: bytes = bytes(8),
        reconsume_times: int = 0,
        prepared_offset: int = 0,
        wait: bool = True,
        batch: Sequence[BatchItem] | None = None,
        reply: Callable[["Append"], None] = _nobody,
    ) -> None:
        self.topic, self.queue_id, self.body, self.properties = topic, queue_id, body, properties
        self.flag, self.sys_flag = flag, sys_flag
        self.born_ms, self.born_host = born_ms, born_host
        self.reconsume_times, self.prepared_offset = reconsume_times, prepared_offset
        self.wait, self.batch, self.reply = wait, batch, reply
        self.status = PutStatus.UNKNOWN_ERROR
        self.physical_offset = self.queue_offset = -1
        self.physical_offsets: list[int] = []
        self.store_ms = self.size = 0
        self.error = ""


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
