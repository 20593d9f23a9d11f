"""RocketMQ's version numbers by name: what a client or a broker says of itself."""

from typing import Final

FIRST_REGULAR: Final = 194
"""V3_9_1_SNAPSHOT. From here on each version has two numbers: a snapshot, then the release."""
FIRST_REGULAR_VERSION: Final = 391
HIGHER: Final = 612
"""RocketMQ names no number from here on."""


def version_name(number: int) -> str:
    """V4_9_8 for 409, as RocketMQ's tools print it."""
    if number >= HIGHER:
        return "HIGHER_VERSION"
    if number < FIRST_REGULAR:
        return f"V3_x ({number})"
    step, is_release = divmod(number - FIRST_REGULAR, 2)
    version = FIRST_REGULAR_VERSION + step
    name = "V" + "_".join(str(version))
    return name if is_release else f"{name}_SNAPSHOT"
