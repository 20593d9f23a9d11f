"""What the tests of the archive share: rows without a broker, and files of them."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from gantrymq.model import Queue
from gantrymq.pipelines.lake.file_writer import FileWriter
from gantrymq.pipelines.lake.files import DataFile
from gantrymq.pipelines.lake.schema import MESSAGE

FORMATS = ("delta", "iceberg", "parquet")
NOON = int(datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp() * 1000)
"""A time for stored messages."""


def batch(queue: Queue, first: int, last: int, at_ms: int = NOON, step_ms: int = 1) -> Any:
    """Rows of a queue, each with a body that says its place; `step_ms` apart."""
    offsets = range(first, last + 1)
    times = [pa.scalar((at_ms + n * step_ms) * 1000, pa.timestamp("us", "UTC")).as_py()
             for n in range(len(offsets))]  # fmt: skip
    made: dict[str, list[Any]] = {
        "topic": [queue.topic] * len(offsets),
        "brokerName": [queue.broker_name] * len(offsets),
        "queueId": [queue.queue_id] * len(offsets),
        "queueOffset": list(offsets),
        "commitLogOffset": [offset * 100 for offset in offsets],
        "msgId": [f"{queue.queue_id:02X}{offset:030X}" for offset in offsets],
        "offsetMsgId": [f"7F00000100002A9F{offset * 100:016X}" for offset in offsets],
        "keys": [f"k{offset} all" for offset in offsets],
        "tags": [f"t{offset % 3}" for offset in offsets],
        "properties": [[("KEYS", f"k{offset} all"), ("TAGS", f"t{offset % 3}"),
                        ("UNIQ_KEY", f"{queue.queue_id:02X}{offset:030X}")]
                       for offset in offsets],
        "body": [f"{queue.queue_id}:{offset}".encode() for offset in offsets],
        "bornTimestamp": times,
        "storeTimestamp": times,
        "bornHost": ["127.0.0.1:1000"] * len(offsets),
        "storeHost": ["127.0.0.1:10911"] * len(offsets),
    }  # fmt: skip
    columns = [made.get(field.name, [0] * len(offsets)) for field in MESSAGE]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, MESSAGE, strict=True)],
        schema=MESSAGE,
    )


def written(
    root: Path, queue: Queue, first: int, last: int, at_ms: int = NOON, step_ms: int = 1
) -> tuple[DataFile, ...]:
    """Files with those rows."""
    writer = FileWriter(root, queue, f"{first}t")
    writer.add(batch(queue, first, last, at_ms, step_ms))
    return tuple(writer.close())


class Here:
    """Runs tasks in this very process, one after the other: for faults by the hundred."""

    def range(self, start: int, end: int, step: int, parts: int) -> "Here":
        self._count = end
        return self

    def mapInArrow(self, run: Any, schema: str) -> "Here":
        self._run = run
        return self

    def collect(self) -> list[Any]:
        numbers = (pa.RecordBatch.from_pydict({"id": [at]}) for at in range(self._count))
        return [
            SimpleNamespace(**row)
            for number in numbers
            for batch in self._run(iter([number]))
            for row in batch.to_pylist()
        ]
