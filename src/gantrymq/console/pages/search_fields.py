"""The fields of the search form: times in the reader's zone, and addresses of next pages."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from gantrymq.console.errors import BadInput

SINCE: Final = {"15m": 900, "1h": 3600, "6h": 6 * 3600, "1d": 86_400, "7d": 7 * 86_400}
"""How long ago a search begins, in seconds."""
ZONE_MINUTES_MAX: Final = 24 * 60
KEPT_FIELDS: Final = (
    "by", "topic", "tags", "sql", "text", "since", "from", "until", "zone", "order", "broker",
    "queueId", "offset", "id", "key", "limit",
)  # fmt: skip
"""What a saved filter and the address of a next page have."""


def times_of(fields: Mapping[str, str], now_ms: int) -> dict[str, int]:
    """The times of a search: since a while ago, or between two moments."""
    since = fields.get("since", "")
    if since in SINCE:
        return {"fromMs": now_ms - SINCE[since] * 1000}
    zone = _minutes(fields.get("zone", ""))
    found = {}
    for name, field in (("fromMs", "from"), ("untilMs", "until")):
        if since == "between" and fields.get(field):
            found[name] = _moment_ms(fields[field], zone)
    if "untilMs" in found:
        found["untilMs"] += 999 if len(fields["until"]) > 16 else 59_999  # what the reader sees
    return found


def _moment_ms(text: str, zone: int) -> int:
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC) - timedelta(minutes=zone)
    except (ValueError, OverflowError):
        raise BadInput(f"{text!r} is no time: write 2026-11-18T09:30") from None
    return max(0, int(moment.timestamp() * 1000))


def _minutes(text: str) -> int:
    """How far the reader's clock is before UTC; without a script it is UTC."""
    try:
        found = int(text)
    except ValueError:
        return 0
    return found if abs(found) <= ZONE_MINUTES_MAX else 0


def kept(fields: Mapping[str, str], **changes: str) -> str:
    """The fields as the query of an address."""
    values = {name: fields[name] for name in KEPT_FIELDS if fields.get(name)}
    return urlencode({key: each for key, each in (values | changes).items() if each})


def letters_query(fields: Mapping[str, str], **changes: str) -> str:
    """The choice of letters as the query of an address."""
    names = ("fingerprint", "topic", "key", "since", "from", "until", "zone", "limit")
    values = {name: fields[name] for name in names if fields.get(name)}
    return urlencode({key: each for key, each in (values | changes).items() if each})
