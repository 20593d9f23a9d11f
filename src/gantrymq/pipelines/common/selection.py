"""Which messages are selected: the same rule for an archive, a topic and store files.

SQL is RocketMQ's, over properties, with its three-valued logic: a message is selected only if the
condition is true. Spark's own SQL would decide some cases differently.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.base.errors import ConfigError
from gantrymq.filter import condition
from gantrymq.protocol.properties import ENTRY_END, NAME_END
from gantrymq.protocol.subscription import ALL, parse_tags

IDS_MAX = 10_000
"""Ids and keys a selection may name; more are a join, not an option."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What a message must meet to be selected; a field left at its default does not limit."""

    since_ms: int | None = None
    until_ms: int | None = None
    """Times are those at which messages were stored; the end is exclusive."""
    keys: tuple[str, ...] = ()
    tags: str = ALL
    sql: str | None = None
    ids: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether every message is selected."""
        return self == Selection()


def check_selection(selection: Selection) -> None:
    """Raise an error if the selection is wrong, before anything is read."""
    parse_tags(selection.tags)
    if selection.sql is not None:
        condition(selection.sql)
    for name, words in (("keys", selection.keys), ("ids", selection.ids)):
        if len(words) > IDS_MAX:
            raise ConfigError(f"{len(words)} {name} are more than {IDS_MAX}: replay them in parts")
        if any(not word or word.split() != [word] for word in words):
            raise ConfigError(f"{name} are single words, none of them empty")


def stored_in(frame: Any, since_ms: int | None, until_ms: int | None) -> Any:
    """The rows of a frame of messages that were stored in [since, until); None is no limit."""
    from pyspark.sql import functions as f  # a caller with a frame has loaded Spark

    stored = f.col("storeTimestamp")
    if since_ms is not None:
        frame = frame.where(stored >= f.timestamp_millis(f.lit(since_ms)))
    if until_ms is not None:
        frame = frame.where(stored < f.timestamp_millis(f.lit(until_ms)))
    return frame


def select_messages(frame: Any, selection: Selection) -> Any:
    """The rows of a frame of messages that are selected."""
    from pyspark.sql import functions as f

    found = stored_in(frame, selection.since_ms, selection.until_ms)
    tags = parse_tags(selection.tags)
    if tags:
        found = found.where(f.col("tags").isin(*tags))
    if selection.keys:
        wanted = f.array(*(f.lit(key) for key in selection.keys))
        found = found.where(f.arrays_overlap(f.split("keys", " +"), wanted))
    if selection.ids:
        words = [*selection.ids, *(word.upper() for word in selection.ids)]
        found = found.where(f.col("msgId").isin(*words) | f.col("offsetMsgId").isin(*words))
    return found if selection.sql is None else found.where(_holds(selection.sql))


def _holds(sql: str) -> Any:
    """The condition as a Spark column; only the properties are sent to Python."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.functions import arrow_udf

    def ask(properties: pa.Array) -> pa.Array:
        return match_condition(properties, sql)

    # Spark finds out what kind of function it is from the annotations, and only from real ones.
    ask.__annotations__ = {"properties": pa.Array, "return": pa.Array}
    made: Any = arrow_udf
    return made(ask, "boolean")(f.col("properties"))


def match_condition(properties: pa.Array, sql: str) -> pa.Array:
    """For each map of properties whether the condition is true of it."""
    matches = condition(sql).matches
    return pa.array([matches(raw) for raw in raw_properties(properties)], pa.bool_())


def raw_properties(properties: pa.Array) -> Sequence[bytes]:
    """Maps of properties as messages carry them, entry by entry."""
    starts = pc.subtract(properties.offsets, properties.offsets[0])
    first, last = properties.offsets[0].as_py(), properties.offsets[-1].as_py()
    names = properties.keys.slice(first, last - first)
    values = properties.items.slice(first, last - first).fill_null("")
    ended = pc.binary_join_element_wise(values, "", ENTRY_END)
    entries = pc.binary_join_element_wise(names, ended, NAME_END)
    lists = pa.ListArray.from_arrays(starts.cast(pa.int32()), entries)
    joined = pc.fill_null(pc.binary_join(lists, ""), "")
    return [bytes(text.as_buffer()) for text in joined]
