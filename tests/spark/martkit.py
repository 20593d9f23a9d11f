"""Frames for tests of marts: rows with the columns that matter, the rest filled in."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gantrymq.pipelines.marts.mart import Mart, MartTable, settle
from gantrymq.pipelines.staging import copies, group_progress, messages, spans

MINUTE: Final = 60_000
NOON: Final = 1_780_000_020_000
"""Some time that minutes begin at, in milliseconds."""

_PLAIN: Final[Mapping[str, Any]] = {
    "string": None, "bigint": 0, "int": 0, "boolean": False,
}  # fmt: skip


def frame(spark: Any, schema: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows with these columns; what a row leaves out is null, 0 or false."""
    fields = [each.split(" ") for each in schema.split(", ")]
    filled = [tuple(row.get(name, _PLAIN.get(kind)) for name, kind in fields) for row in rows]
    return spark.createDataFrame(filled, schema)


def message(number: int, **given: Any) -> dict[str, Any]:
    """The message so numbered of topic `orders`: stored at noon and so many seconds, in queue 0."""
    at = NOON + number * 1000
    return {
        "topic": "orders", "brokerName": "b", "queueId": 0, "queueOffset": number,
        "msgId": f"m{number}", "bytes": 100, "bornMs": at - 5, "storedMs": at, "inside": True,
    } | given  # fmt: skip


def messages_frame(spark: Any, rows: Iterable[Mapping[str, Any]]) -> Any:
    return frame(spark, messages.SCHEMA, rows)


def tries_frame(spark: Any, rows: Iterable[tuple[str, str, bool | None]]) -> Any:
    """Attempts by group, message and end; each begins a second behind noon and takes 7 ms."""
    return frame(
        spark, spans.DELIVERIES,
        [
            {"group": group, "msgId": msg_id, "requestId": f"r{at}", "beganMs": NOON + 1000 + at,
             "endedMs": None if ok is None else NOON + 1007 + at,
             "costMs": None if ok is None else 7, "ok": ok}
            for at, (group, msg_id, ok) in enumerate(rows)
        ],
    )  # fmt: skip


def pubs_frame(spark: Any, rows: Iterable[Mapping[str, Any]]) -> Any:
    plain = {"topic": "orders", "sentMs": NOON, "producer": "shop", "ok": True, "recalled": False}
    return frame(spark, spans.PUBS, [plain | row for row in rows])


def retries_frame(spark: Any, rows: Iterable[Mapping[str, Any]]) -> Any:
    plain = {"group": "billing", "topic": "orders", "place": "%RETRY%billing", "brokerName": "b"}
    return frame(spark, copies.RETRIES, [plain | row for row in rows])


def dead_frame(spark: Any, rows: Iterable[Mapping[str, Any]]) -> Any:
    plain = {"group": "billing", "topic": "orders", "deadId": "d", "tries": 3, "diedMs": NOON}
    return frame(spark, copies.DEAD_LETTERS, [plain | row for row in rows])


def progress_frame(spark: Any, rows: Iterable[Mapping[str, Any]]) -> Any:
    plain = {"atMs": NOON, "group": "billing", "topic": "orders", "brokerName": "b", "queueId": 0}
    return frame(spark, group_progress.SCHEMA, [plain | row for row in rows])


def table(mart: Mart, found: Any) -> MartTable:
    return settle(mart, found)


def shown(found: MartTable, *names: str) -> list[tuple[Any, ...]]:
    """Some columns of a table."""
    return [tuple(row[name] for name in names) for row in found.rows]
