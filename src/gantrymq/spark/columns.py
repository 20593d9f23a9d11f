"""The columns of a message as Spark sees them."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from gantrymq.base.errors import ConfigError

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


def check_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The names, if they are columns and none comes twice."""
    chosen = tuple(names)
    for name in chosen:
        if name not in COLUMNS:
            raise ConfigError(f"no column {name!r}{nearest(name, COLUMNS)}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise ConfigError(f"columns must be named once each, not {', '.join(chosen) or 'none'}")
    return chosen


def check_types(types: Mapping[str, str], known: Mapping[str, str] = COLUMNS) -> tuple[str, ...]:
    """The columns of a schema that the user gave; a type other than the column's is refused."""
    names = check_columns(types)
    for name, kind in types.items():
        wanted = known.get(name, COLUMNS[name])
        if kind != wanted:
            raise ConfigError(f"column {name} is {wanted}, not {kind}: cast it in the query")
    return names


def nearest(name: str, known: Collection[str]) -> str:
    """`; did you mean ...?` for a name that is nearly one of the known ones, else nothing."""
    folded = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[near[0]]}?" if near else ""
