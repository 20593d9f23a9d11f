"""The columns of the rows that a query reads, and the form of the body. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from gantrymq.spark.options import values
from gantrymq.spark.options.columns import COLUMNS, check_columns, check_types
from gantrymq.spark.options.kafka_names import KAFKA_COLUMNS
from gantrymq.spark.options.option_table import canonical

BINARY, TEXT = "binary", "text"
ROCKETMQ, KAFKA = "rocketmq", "kafka"
_HEADERS: Final = ("properties", "headers")
_BODIES: Final = ("body", "value")
"""The body, in our words and in Kafka's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShape:
    """What rows look like."""

    types: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    """The chosen columns, in their order, and the Spark type of each."""
    known: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    """All columns that could have been chosen, by our names or by Kafka's."""
    is_text: bool = False
    """The body is text (UTF-8) instead of bytes."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    def narrow(self, types: Mapping[str, str]) -> Self:
        """The shape of a schema that the user gave; a type other than the column's is refused."""
        check_types(types, self.types, self.known)
        return type(self)(types=dict(types), known=self.known, is_text=self.is_text)


def parse_row_shape(options: Mapping[str, str]) -> RowShape:
    """Read the options that choose columns: columns, schema, bodyAs, includeProperties."""
    given = canonical(options)
    schema = values.choice(given.get("schema", ROCKETMQ), "schema", (ROCKETMQ, KAFKA))
    body = values.choice(given.get("bodyAs", BINARY), "bodyAs", (BINARY, TEXT))
    known = KAFKA_COLUMNS if schema == KAFKA else COLUMNS
    types = {**known}
    if body == TEXT:
        types |= {name: "string" for name in _BODIES if name in known}
    if "columns" in given:
        chosen = check_columns(values.words(given["columns"]), known)
    else:  # Kafka's source leaves headers out by default
        keeps = given.get("includeProperties", str(schema == ROCKETMQ))
        keeps_headers = values.flag(keeps, "includeProperties")
        chosen = tuple(name for name in known if keeps_headers or name not in _HEADERS)
    return RowShape(types={name: types[name] for name in chosen}, known=known, is_text=body == TEXT)
