"""Spark's words for columns as Arrow's. Pure."""

from typing import Final

import pyarrow as pa

_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<string>": pa.list_(pa.string()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}


def arrow_schema(ddl: str) -> pa.Schema:
    """The schema that is written as `name kind, name kind`."""
    columns = (column.split(" ") for column in ddl.split(", "))
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns])
