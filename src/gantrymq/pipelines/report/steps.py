"""Steps of time for lines and heat maps. Pure."""

from typing import Final

STEPS_MS: Final = {
    "second": 1_000,
    "10 seconds": 10_000,
    "minute": 60_000,
    "10 minutes": 600_000,
    "hour": 3_600_000,
    "6 hours": 21_600_000,
    "day": 86_400_000,
}
POINTS_MAX: Final = 240
"""Points that a line may have before its step is made longer."""


def step_for(first_ms: int, last_ms: int, points_max: int = POINTS_MAX) -> int:
    """The shortest step (ms) that gives at most `points_max` points between two times."""
    for step_ms in STEPS_MS.values():
        if (last_ms - first_ms) // step_ms < points_max:
            return step_ms
    day_ms = max(STEPS_MS.values())
    return day_ms * ((last_ms - first_ms) // day_ms // points_max + 1)
