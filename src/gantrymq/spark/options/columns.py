"""The columns of a message as Spark sees them."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.spark.options.kafka_names import in_our_words

COLUMNS: Final = {
    "topic": "string",
    "brokerName": "string",
    "queueId": "int",
    "queueOffset": "bigint",
    "commitLogOffset": "bigint",
    "storeSize": "int",
    "msgId": "string",
    "offsetMsgId": "string",
    "keys": "string",
    "tags": "string",
    "properties": "map<string,string>",
    "body": "binary",
    "flag": "int",
    "sysFlag": "int",
    "reconsumeTimes": "int",
    "bornTimestamp": "timestamp",
    "bornHost": "string",
    "storeTimestamp": "timestamp",
    "storeHost": "string",
    "preparedTransactionOffset": "bigint",
    "bodyCRC": "int",
}
"""Every column and its Spark type, in the order they have unless somebody chooses."""


def ddl(types: Mapping[str, str]) -> str:
    """A schema of some columns as Spark's DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


def check_columns(names: Iterable[str], known: Collection[str] = COLUMNS) -> tuple[str, ...]:
    """The names, checked: each is a column, and none comes twice."""
    chosen = tuple(names)
    for name in chosen:
        if name not in known:
            raise ConfigError(_no_column(name, known))
    if not chosen or len(set(chosen)) < len(chosen):
        raise ConfigError(f"columns must be named once each, not {', '.join(chosen) or 'none'}")
    return chosen


def _no_column(name: str, known: Collection[str]) -> str:
    words = in_our_words(name)
    if words:
        return f"column {name}{words} (or read with schema=kafka)"
    return f"no column {name!r}{nearest(name, known)}"


def check_types(
    types: Mapping[str, str],
    chosen: Mapping[str, str] = COLUMNS,
    known: Mapping[str, str] = COLUMNS,
) -> tuple[str, ...]:
    """The columns of a schema that the user gave; a type other than the column's is refused.

    `chosen` are the columns that the options select; their types may differ from the usual ones.
    """
    names = check_columns(types, known)
    for name, kind in types.items():
        wanted = chosen.get(name, known[name])
        if kind != wanted:
            raise ConfigError(f"column {name} is {wanted}, not {kind}: cast it in the query")
    return names


def nearest(name: str, known: Collection[str]) -> str:
    """`; did you mean ...?` for a name that is nearly one of the known ones, else nothing."""
    folded = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[near[0]]}?" if near else ""
