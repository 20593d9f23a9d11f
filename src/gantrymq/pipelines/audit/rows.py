"""Findings as rows that cross from Spark's workers to the driver."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa

from gantrymq.pipelines.common.arrow import arrow_schema
from gantrymq.store.audit.findings import Finding

SCHEMA: Final = (
    "level string, kind string, file string, at bigint, position bigint, topic string, "
    "queue_id int, offset bigint, count bigint, text string"
)
_ARROW: Final = arrow_schema(SCHEMA)


def batch_of(findings: Sequence[Finding]) -> pa.RecordBatch:
    """Findings as one Arrow batch."""
    return pa.RecordBatch.from_pylist([asdict(each) for each in findings], _ARROW)


def from_rows(rows: Iterable[Any]) -> list[Finding]:
    """Findings from Spark's rows."""
    return [Finding(**row.asDict()) for row in rows]
