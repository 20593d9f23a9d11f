"""The columns of an archive: those of a message, and the day it was stored."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from gantrymq.base.errors import ConfigError
from gantrymq.pipelines.common.arrow import arrow_schema
from gantrymq.spark.options.columns import COLUMNS, ddl

DAY: Final = "dt"
PARTITIONS: Final = ("topic", DAY)

MESSAGE: Final = arrow_schema(ddl(COLUMNS))
ARROW: Final = MESSAGE.append(pa.field(DAY, pa.date32()))
DDL: Final = f"{ddl(COLUMNS)}, {DAY} date"
"""The same for Spark."""


def check_schema(found: pa.Schema, path: str, partitions: Sequence[str]) -> list[str]:
    """The columns that a table lacks; an error if the table is not an archive.

    A later version or the owner of the table may add columns. A table is foreign if one of our
    columns has another type, or a partition column is missing.
    """
    missing: list[str] = []
    for field in ARROW:
        at = found.get_field_index(field.name)
        if at < 0:
            missing.append(field.name)
        elif not _same(found.field(at).type, field.type):
            raise ConfigError(
                f"the table {path} is not an archive of messages: its column {field.name} is "
                f"{found.field(at).type}, not {field.type}. Choose another folder"
            )
    for name in ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", DAY):
        if name in missing:
            raise ConfigError(
                f"the table {path} is not an archive of messages: it has no column {name}. "
                "Choose another folder"
            )
    if tuple(partitions) != PARTITIONS:
        raise ConfigError(
            f"the table {path} is not an archive of messages: it is partitioned by "
            f"{', '.join(partitions) or 'nothing'}, not by {', '.join(PARTITIONS)}. "
            "Choose another folder"
        )
    return missing


def _same(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a table treats the types as one; the width of Arrow's offsets does not matter."""
    large = {
        pa.large_string(): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
    }
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return _same(found.key_type, wanted.key_type) and _same(found.item_type, wanted.item_type)
    return bool(large.get(found, found) == wanted)
