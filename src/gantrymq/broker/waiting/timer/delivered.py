"""The properties of a timer message when it is delivered, or rolled while it waits."""

from gantrymq.base.errors import ProtocolError
from gantrymq.broker.waiting.timer.times import number
from gantrymq.kernel import find_property
from gantrymq.protocol import properties
from gantrymq.protocol.record import PROPERTIES_BYTES_MAX


def delivered_properties(stored: bytes, taken_ms: int, now_ms: int) -> bytes:
    """All properties, with the times of enqueue and dequeue added, as in RocketMQ."""
    more = {
        properties.TIMER_ENQUEUE_MS: str(taken_ms),
        properties.TIMER_DEQUEUE_MS: str(now_ms),
    }
    return _with(stored, more) or stored


def rolled_properties(stored: bytes, out_ms: int) -> bytes:
    """The properties of a copy: one more roll counted, and the exact time set."""
    found = properties.decode(stored)
    times = (number(found.get(properties.TIMER_ROLL_TIMES)) or 0) + 1
    more = {properties.TIMER_ROLL_TIMES: str(times), properties.TIMER_OUT_MS: str(out_ms)}
    return _with(stored, more) or stored


def is_rolled(stored: bytes) -> bool:
    """Whether this message is a copy that was rolled."""
    return find_property(stored, b"TIMER_ROLL_TIMES") is not None


def with_out_ms(stored: bytes, out_ms: int) -> bytes | None:
    """Properties with TIMER_OUT_MS set, as the timer needs it; None if there is no room."""
    return _with(stored, {properties.TIMER_OUT_MS: str(out_ms)})


def _with(stored: bytes, more: dict[str, str]) -> bytes | None:
    """Properties with more added; None if there is no room, or a value cannot be encoded."""
    names = [f"{name}{properties.NAME_END}".encode() for name in more]
    if any(name in stored for name in names):
        try:
            whole = properties.encode({**properties.decode(stored), **more}).encode()
        except ProtocolError:
            return None
    else:
        end = b"" if not stored or stored.endswith(b"\x02") else b"\x02"
        whole = stored + end + properties.encode(more).encode()
    return whole if len(whole) <= PROPERTIES_BYTES_MAX else None
