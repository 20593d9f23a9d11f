"""Words for times, under the name by which pipelines know them; see `gantrymq.base.moments`."""

from gantrymq.base.moments import (
    ACCEPTED,
    DAYS,
    UNITS,
    Moment,
    Period,
    describe,
    find_moment,
    find_zone,
    local_zone,
    parse_moment,
    parse_period,
)

__all__ = [
    "ACCEPTED",
    "DAYS",
    "UNITS",
    "Moment",
    "Period",
    "describe",
    "find_moment",
    "find_zone",
    "local_zone",
    "parse_moment",
    "parse_period",
]
