"""The interface to rows of messages, from brokers or from store files."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.spark.records.survey import Sample


class Rows(Protocol):
    """A source of rows. Use it in a `with` block; each process makes its own."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def close(self) -> None: ...

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        """The first and the next offset of every queue of the chosen topics."""
        ...

    def offsets_at(self, times: Mapping[Queue, int]) -> QueueOffsets:
        """For each queue the first message that was stored at a time (in ms) or later."""
        ...

    def samples(self, starts: QueueOffsets) -> dict[Queue, Sample]:
        """The size and age of each queue's next messages; queues without any are left out."""
        ...

    def committed(self, queues: Sequence[Queue]) -> QueueOffsets:
        """The progress of the options' group; queues without any are left out."""
        ...

    def proven(self, queues: Collection[Queue]) -> set[Queue]:
        """Those of the queues whose end is certain: a slave may lag behind its master."""
        ...

    def batches(self, wanted: OffsetRange, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of a range as `pyarrow.RecordBatch`es of a few MiB, in order of offset."""
        ...
