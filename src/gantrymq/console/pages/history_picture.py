"""The history of a message as a picture: a lane for the message and one for each group."""

from dataclasses import dataclass, field
from typing import Final

from gantrymq.console.api.message import History, HistoryEvent

LEFT: Final = 150
STEP: Final = 120
TOP: Final = 28
LANE: Final = 72
_LOOKS: Final = {
    "failed": "error", "dead": "error", "recall failed": "error", "undecided": "error",
    "retry": "warning", "redelivered": "warning", "delayed": "warning", "half": "warning",
    "checked": "warning", "acked": "ok", "stored": "ok", "sent": "ok", "decided": "ok",
}  # fmt: skip


@dataclass(frozen=True)
class Dot:
    """One event."""

    x: int
    y: int
    look: str
    event: HistoryEvent
    after: str
    """How long after the first event."""


@dataclass(frozen=True)
class Lane:
    """The message itself, or one group."""

    group: str
    y: int
    state: str


@dataclass
class HistoryPicture:
    """Where everything stands."""

    width: int
    height: int
    lanes: list[Lane] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The way of the message from event to event."""
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


def picture_of(history: History) -> HistoryPicture:
    """The picture of a history."""
    states = {each.group: each.state for each in history.groups}
    names = [""]
    names += [each.group for each in history.groups]
    names += [each.group for each in history.events if each.group]
    lanes = [
        Lane(name, TOP + LANE // 2 + LANE * at, states.get(name, ""))
        for at, name in enumerate(dict.fromkeys(names))
    ]
    height_of = {lane.group: lane.y for lane in lanes}
    width = LEFT + STEP * max(1, len(history.events))
    made = HistoryPicture(width, TOP + LANE * len(lanes), lanes)
    first = history.events[0].at_ms if history.events else 0
    for at, event in enumerate(history.events):
        made.dots.append(
            Dot(
                LEFT + STEP // 2 + STEP * at,
                height_of[event.group],
                _LOOKS.get(event.what, "note"),
                event,
                after(event.at_ms - first),
            )
        )
    return made


def after(ms: int) -> str:
    """A duration for people, with milliseconds where they matter."""
    if ms < 0:
        return f"−{after(-ms)[1:]}"
    if ms < 1000:
        return f"+{ms} ms"
    if ms < 60_000:
        return f"+{ms / 1000:.1f} s"
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= length:
            return f"+{ms / length:.1f} {unit}"
    return f"+{ms} ms"
