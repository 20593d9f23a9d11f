"""The store's settings and their two profiles."""

from typing import Literal, Self

import msgspec

from gantrymq.base.errors import ConfigError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

DELAY_LEVELS_MS = (
    *(1_000, 5_000, 10_000, 30_000),
    *(minutes * 60_000 for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)),
    *(3_600_000, 7_200_000),
)
"""RocketMQ's eighteen delays; level 1 is the first."""


CHANGEABLE = (
    "flush_interval_ms", "flush_least_pages", "flush_thorough_ms", "sync_flush_timeout_ms",
    "queue_wait_max_ms", "append_busy_ms", "retention_hours", "delete_when", "clean_interval_ms",
    "delete_batch_max", "disk_clean_ratio", "disk_force_ratio", "disk_refuse_ratio",
    "max_message_bytes", "flush", "delay_levels_ms",
)  # fmt: skip
"""What may change while a store is open; its parts read these when they need them."""


class StoreConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How a store lays out its files and when it flushes, deletes and refuses.

    All parts of a store share one object; only `Store.reconfigure` changes it.
    """

    directory: str
    log_directory: str = ""
    """Where the commit log lies; empty means `commitlog` below `directory`."""

    segment_bytes: int = 1 * GIB
    """Size of one commit-log file; fixed for the life of the store, like the next three."""
    queue_file_entries: int = 300_000
    index_slots: int = 5_000_000
    index_entries: int = 20_000_000
    index_enabled: bool = True
    ext_file_bytes: int = 48 * MIB
    """Size of a file of `consumequeue_ext`; files that are there keep theirs."""

    is_copy: bool = False
    """Whether the log is the copy of a master's: then nothing else is appended to it."""

    in_group: bool = False
    """Whether the log is a raft group's: a record is dispatched when a majority has it, and the
    group's leader alone appends to it."""

    flush: Literal["ASYNC_FLUSH", "SYNC_FLUSH"] = "ASYNC_FLUSH"
    flush_interval_ms: int = 500
    """Asynchronous flush: how often dirty pages are looked at."""
    flush_least_pages: int = 4
    """Asynchronous flush: fewer dirty pages than this wait for the thorough flush."""
    flush_thorough_ms: int = 10_000
    """Asynchronous flush: the most a power cut may lose."""
    sync_flush_timeout_ms: int = 5_000
    queue_wait_max_ms: int = 200
    """Appends that wait longer for the next log file are refused as busy; 0 lets them wait."""
    append_busy_ms: int = 1_000
    """A write that took this long means a busy disk: what piled up behind it is refused."""
    queue_write_interval_ms: int = 1_000
    """How often queue entries go from memory to their files."""
    queues_written_max: int = 2_000
    """Of how many queues they go there at once; a checkpoint writes those of all."""
    checkpoint_interval_ms: int = 10_000
    """How often everything is made durable; what lies behind it need not be scanned again."""

    retention_hours: int = 72
    delete_when: str = "04"
    """Hours of the day, separated by semicolons, at which files past their time are deleted."""
    clean_interval_ms: int = 10_000
    delete_batch_max: int = 10
    disk_clean_ratio: float = 0.75
    disk_force_ratio: float = 0.85
    disk_refuse_ratio: float = 0.90
    judge_by_free_bytes: bool = False
    """Ignore the three ratios and refuse only when the next file cannot be allocated."""

    max_message_bytes: int = 4 * MIB
    check_crc_on_recover: bool = True
    open_files_max: int = 1024
    """How many queue and log descriptors may stay open between uses."""
    delay_levels_ms: tuple[int, ...] = DELAY_LEVELS_MS

    def __post_init__(self) -> None:
        if self.segment_bytes < 4 * KIB or self.segment_bytes % 512:
            raise ConfigError("segment_bytes must be a multiple of 512 and at least 4096")
        for name in ("queue_file_entries", "index_slots", "open_files_max"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1")
        if self.index_entries < 2:
            raise ConfigError("index_entries must be at least 2, as entry 0 is never used")

    @property
    def commit_log_directory(self) -> str:
        """Where the commit log lies."""
        return self.log_directory or f"{self.directory}/commitlog"

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The file sizes of a store, which cannot change; the checkpoint records them."""
        return self.segment_bytes, self.queue_file_entries, self.index_slots, self.index_entries

    @property
    def record_bytes_max(self) -> int:
        """The largest record: RocketMQ allows 64 KiB beside the body, and it must fit a file."""
        return min(self.max_message_bytes + 64 * KIB, self.segment_bytes - 8)

    @classmethod
    def rocketmq(cls, directory: str) -> Self:
        """RocketMQ's sizes and ratios."""
        return cls(directory=directory)

    @classmethod
    def dev(cls, directory: str) -> Self:
        """Small files, and a nearly full disk does not stop writes."""
        return cls(
            directory=directory,
            segment_bytes=64 * MIB,
            index_slots=50_000,
            index_entries=200_000,
            ext_file_bytes=1 * MIB,
            judge_by_free_bytes=True,
        )
