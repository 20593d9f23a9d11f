"""Rows of messages, wherever they lie: the one face that readers and pipelines use.

A range of a queue is read as Arrow batches, from a cluster over the wire or from the files of a
store. Offsets mean the same in both, so a reader may begin in files and go on at the broker.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from gantrymq.spark.decode import decode
from gantrymq.spark.fetch import Reader, gathered
from gantrymq.spark.options import SourceOptions, parse_options
from gantrymq.spark.plan import Offsets, Range


class Rows(Protocol):
    """Where rows come from. Use it in a `with` block; it is made anew in every process."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def close(self) -> None: ...

    def bounds(self) -> tuple[Offsets, Offsets]:
        """The first and the next offset of every queue of the chosen topics."""
        ...

    def batches(self, wanted: Range, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of a range as `pyarrow.RecordBatch`es of a few MiB, in order of offset."""
        ...


class BrokerRows:
    """Rows of any RocketMQ cluster, pulled over the wire."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._reader = Reader(options.namesrv, options.group)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    def bounds(self) -> tuple[Offsets, Offsets]:
        return self._reader.bounds(self._options.topics)

    def batches(self, wanted: Range, columns: Sequence[str]) -> Iterator[Any]:
        options = self._options
        strict = options.fail_on_data_loss
        for records in gathered(self._reader.replies(wanted, options.pull_count, strict=strict)):
            yield decode(records, wanted.queue, columns)


def open_rows(options: SourceOptions) -> Rows:
    """The rows that the options name."""
    return BrokerRows(options)


def source_options(settings: Mapping[str, str]) -> SourceOptions:
    """Options for a pipeline that reads ranges itself, by the names that users know."""
    return parse_options(settings, streaming=False, namesrv_default="")
