"""The progress of groups, now and in the past: a table of snapshots, one added each run."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.model import Queue
from gantrymq.pipelines.common.arrow import arrow_schema
from gantrymq.protocol import fastjson

SCHEMA: Final = (
    "atMs bigint, group string, topic string, brokerName string, queueId int, "
    "brokerOffset bigint, groupOffset bigint, lastMs bigint"
)
"""`lastMs`: when the last message that the group has read was stored; null if it read none."""
_ARROW: Final = arrow_schema(SCHEMA)
PREFIX: Final = "lag-"
FILES_MAX: Final = 200
"""Snapshots that stay files of their own; then they are merged into one."""

Snapshot = list[dict[str, Any]]


def progress(spark: SparkSession, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Snapshots as a frame."""
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=_ARROW), schema=SCHEMA)


def append(folder: Path, rows: Snapshot) -> None:
    """Add a snapshot to the history, as a file of its own: runs do not conflict."""
    if not rows:
        return
    folder.mkdir(parents=True, exist_ok=True)
    stamp = f"{rows[0]['atMs']:013d}-{os.getpid()}"
    _write(folder / f"{PREFIX}{stamp}.parquet", pa.Table.from_pylist(rows, schema=_ARROW))
    files = _files(folder)
    if len(files) > FILES_MAX:
        # A crash after the write leaves rows twice: reading drops them.
        merged = pa.Table.from_pylist(_read(files), schema=_ARROW)
        _write(folder / f"{PREFIX}{stamp}-merged.parquet", merged)
        for file in files:
            file.unlink(missing_ok=True)


def history(folder: Path) -> Snapshot:
    """All snapshots there are, each row once, oldest first."""
    return _read(_files(folder)) if folder.is_dir() else []


def stored_progress(folder: Path, broker: str, at_ms: int) -> Snapshot:
    """Progress as a broker stores it (`config/consumerOffset.json`)."""
    file = folder / "config" / "consumerOffset.json"
    if not file.is_file():
        return []
    try:
        table = fastjson.loads(file.read_bytes())["offsetTable"]
        return [
            row(at_ms, group, Queue(topic, broker, int(queue_id)), None, int(offset), None)
            for key, queues in table.items()
            for topic, _, group in [key.partition("@")]
            for queue_id, offset in queues.items()
        ]
    except (GantryError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(f"{file} is no table of offsets: {error}") from error


def row(
    at_ms: int, group: str, queue: Queue, end: int | None, read: int | None, last_ms: int | None
) -> dict[str, Any]:
    """One queue of one group at one time."""
    return {
        "atMs": at_ms,
        "group": group,
        "topic": queue.topic,
        "brokerName": queue.broker_name,
        "queueId": queue.queue_id,
        "brokerOffset": end,
        "groupOffset": read,
        "lastMs": last_ms,
    }


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*.parquet"))


def _read(files: Iterable[Path]) -> Snapshot:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for file in files:
        try:
            table = pq.read_table(file, schema=_ARROW)
        except FileNotFoundError:
            continue  # another run just merged it
        except (pa.ArrowInvalid, OSError) as error:
            raise ConfigError(
                f"{file} is no snapshot of lags: remove it, or choose another --history ({error})"
            ) from error
        for each in table.to_pylist():
            key = (each["atMs"], each["group"], each["topic"], each["brokerName"], each["queueId"])
            found[key] = each
    return [found[key] for key in sorted(found)]


def _write(path: Path, table: Any) -> None:
    """Write a file completely or not at all, also after a power cut."""
    making = path.with_suffix(".making")
    with making.open("wb") as file:
        pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    making.rename(path)
