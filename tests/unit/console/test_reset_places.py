"""Where a reset goes: ends, offsets and times, and queues by name."""

from datetime import UTC, datetime

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.client.admin.groups.reset_offsets import To
from gantrymq.console.api.group_progress import place_of, queue_of
from gantrymq.console.errors import BadInput
from gantrymq.model import Queue

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    "text, expected",
    [
        ("first", "first"),
        ("last", "last"),
        ("12", 12),
        ("1800000000000", datetime.fromtimestamp(1_800_000_000, UTC)),
        ("-1m", datetime.fromtimestamp(1_800_000_000 - 60, UTC)),
        ("2026-03-29 08:00", datetime(2026, 3, 29, 6, 0, tzinfo=UTC)),
    ],
)
def test_places(text: str, expected: To) -> None:
    """An end, an offset, or a time in the zone that was given."""
    assert expected == place_of(text, "Europe/Berlin", NOW_MS)


def test_what_is_no_place_or_queue() -> None:
    """Words that mean nothing are refused, and a queue is a broker and a number."""
    with pytest.raises(ConfigError):
        place_of("someday", "UTC", NOW_MS)
    for text in ("broker-a", ":1", "broker-a:x", "broker-a:²"):
        with pytest.raises(BadInput):
            queue_of("orders", text)

    assert Queue("orders", "a:b", 3) == queue_of("orders", "a:b:3")
