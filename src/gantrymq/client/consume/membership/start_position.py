"""Where a group without progress begins: `Consumer(start="first")`.

RocketMQ has three options for it (`consumeFromWhere` and `consumeTimestamp`); a start is one value
that sets them. A group with progress in a queue continues there, whatever the start is.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from gantrymq.base.arguments import wrong_type
from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import ACCEPTED, local_zone, parse_moment
from gantrymq.client.core.options import ConsumerOptions

Start = Literal["first", "last"] | datetime | str
"""The first message still there, the end, or a time: a datetime, `30m ago`, `yesterday 00:00`."""

_ANY_TIME_MS = 1_700_000_000_000


def with_start(options: ConsumerOptions, start: Start | None) -> ConsumerOptions:
    """The options with the start applied; refuses a value that is not a start."""
    if start is None:
        return options
    if start == "first":
        where: Any = "CONSUME_FROM_FIRST_OFFSET"
    elif start == "last":
        where = "CONSUME_FROM_LAST_OFFSET"
    else:
        moment_of(start, _ANY_TIME_MS)
        where = "CONSUME_FROM_TIMESTAMP"
    # An explicit start holds for young queues too, which are else read from their first message.
    return msgspec.structs.replace(
        options, consume_from_where=where, from_last_skips_young_queues=start != "first"
    )


def moment_of(start: datetime | str, now_ms: int) -> int:
    """The moment in milliseconds since 1970; a time without a zone is local."""
    if isinstance(start, datetime):
        return round(start.timestamp() * 1000)
    if not isinstance(start, str):
        raise wrong_type("start", '"first", "last", a datetime or words such as "30m ago"', start)
    try:
        return parse_moment(start, local_zone(), now_ms)
    except ConfigError as error:
        raise ConfigError(
            f'start={start!r} is not "first", "last" or a time. A time is a datetime, or one of: '
            f"{ACCEPTED}"
        ) from error
