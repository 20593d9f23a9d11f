"""The last filter before Spark: exact tags and keys, and the body in the wanted form.

Brokers choose messages by the hash of their tag and do not filter by key; this module compares the
real values, whole columns at a time. Rows from store files pass the same filter.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.spark.options.source_options import SourceOptions

KEYS, OFFSET, TAGS = "keys", "queueOffset", "tags"
BODIES: Final = ("body", "value")
"""The body, in our words and in Kafka's."""
BLANK: Final = " "
"""Stands between the keys of a message."""


class RowFilter:
    """Made once for some options and columns; `needed` are the columns to decode for it."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        messages = options.messages
        tags = messages.tag_names
        self._tags = pa.array(tags, pa.string()) if tags else None
        self._keys = sorted(messages.keys)
        self._is_text = options.shape.is_text
        wanted = {OFFSET: messages.at_broker, TAGS: tags, KEYS: messages.keys}
        more = [name for name, is_so in wanted.items() if is_so and name not in columns]
        self.needed = (*columns, *more)

    def sift(self, batch: Any, end: int | None = None) -> Any:
        """The rows before `end` that match, with the chosen columns; None for no end."""
        masks = list(self._masks(batch, end))
        if masks:
            wanted = reduce(pc.and_, masks)
            if wanted.true_count < len(batch):
                batch = batch.filter(wanted)
        arrays = [
            _text(batch[name]) if name in BODIES and self._is_text else batch[name]
            for name in self._columns
        ]
        return pa.RecordBatch.from_arrays(arrays, list(self._columns))

    def _masks(self, batch: Any, end: int | None) -> Iterator[Any]:
        if end is not None and OFFSET in self.needed:
            yield pc.less(batch[OFFSET], end)
        if self._tags is not None:
            yield pc.is_in(batch[TAGS], self._tags)
        if self._keys:
            texts = pc.fill_null(batch[KEYS], "")
            padded = pc.binary_join_element_wise("", texts, "", BLANK)
            yield reduce(
                pc.or_, (pc.match_substring(padded, f"{BLANK}{key}{BLANK}") for key in self._keys)
            )


def _text(bodies: Any) -> Any:
    """Bytes as text; what is not UTF-8 is replaced, never an error."""
    try:
        return bodies.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([body.decode("utf-8", "replace") for body in bodies.to_pylist()])
