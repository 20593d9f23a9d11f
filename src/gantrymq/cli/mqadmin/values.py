"""How values of options are read and how figures are shown, as RocketMQ's tools do."""

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import describe, find_moment, local_zone
from gantrymq.cli.common.secret_input import read_secret

BROKER_PORT = 10911
ASK = "-"
"""Written in the place of a secret: ask for it."""


def whole(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def number(text: str) -> int:
    """A whole number, also a negative one."""
    return -whole(text[1:]) if text.startswith("-") else whole(text)


def truth(text: str) -> bool:
    """`true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def permission(text: str) -> int:
    """2 (write), 4 (read) or 6 (both)."""
    if text not in ("2", "4", "6"):
        raise ValueError(f"{text!r} is no permission: 2 is write, 4 is read, 6 is both")
    return int(text)


def password(text: str) -> str:
    """A password, or `-` to be asked for it: a list of processes shows what a command is given."""
    return _secret("password", text)


def secret_key(text: str) -> str:
    """A secret key, or `-` to be asked for it."""
    return _secret("secret key", text)


def _secret(what: str, text: str) -> str:
    found = read_secret(what.capitalize()) if text == ASK else text
    if not found.strip():
        raise ValueError(f"the {what} is empty")
    return found


def address(text: str) -> str:
    """The address of a broker; without a port it is RocketMQ's 10911."""
    return text if ":" in text else f"{text}:{BROKER_PORT}"


def moment(text: str) -> int:
    """Milliseconds since 1970: RocketMQ's `now`, a number or `yyyy-MM-dd#HH:mm:ss:SSS`.

    Times are also read as `gantry` reads them.
    """
    if text == "now":
        return SystemClock().now_ms()
    day, sep, clock = text.partition("#")
    if sep and clock.count(":") == 3:
        clock = ".".join(clock.rsplit(":", 1))
    try:
        return find_moment(
            f"{day} {clock}" if sep else text, local_zone(), SystemClock().now_ms()
        ).ms
    except ConfigError as error:
        raise ValueError(str(error)) from None


def shown_time(ms: int) -> str:
    """Local time as `2026-01-31 09:30:00,250`, as RocketMQ prints it; empty for none."""
    if ms <= 0:
        return ""
    return describe(ms, local_zone())[: len("2026-01-31 09:30:00.250")].replace(".", ",")


def shown_second(ms: int) -> str:
    """Local time to the second; N/A for none."""
    return shown_time(ms)[:-4] or "N/A"
