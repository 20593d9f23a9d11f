"""What writers did and what readers found: the values that the checker judges. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["ok", "stored", "failed", "unknown"]
"""`ok`: SEND_OK. `stored`: on the master, but less safely than it was told to. `failed`: certainly
not stored. `unknown`: no answer came."""

STATUS_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "SEND_OK": "ok",
    "FLUSH_DISK_TIMEOUT": "stored",
    "FLUSH_SLAVE_TIMEOUT": "stored",
    "SLAVE_NOT_AVAILABLE": "stored",
}

CERTAIN_REFUSALS: Final = frozenset({2, 13, 14, 16, 17})
"""Codes that a broker answers before it writes: SYSTEM_BUSY, MESSAGE_ILLEGAL,
SERVICE_NOT_AVAILABLE, NO_PERMISSION, TOPIC_NOT_EXIST. Any other code may come after a write."""


@dataclass(frozen=True, order=True)
class Name:
    """A message: the n-th of its writer's messages to a queue."""

    writer: str
    queue: int
    number: int

    def __str__(self) -> str:
        return f"{self.writer}/{self.queue}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Name":
        writer, queue, number = text.split("/")
        return cls(writer, int(queue), int(number))


@dataclass(frozen=True)
class Send:
    """One try to send one message. Times are seconds of the machine's monotonic clock."""

    name: Name
    began: float
    ended: float
    outcome: Outcome
    why: str = ""

    @property
    def acknowledged(self) -> bool:
        return self.outcome in ("ok", "stored")


Read = Mapping[int, list[str]]
"""The bodies of each queue, in the order of their offsets."""


def refusal_outcome(code: int) -> Outcome:
    """What an error code says about the message."""
    return "failed" if code in CERTAIN_REFUSALS else "unknown"


def parse_send(line: str) -> Send:
    """A line of a writer's log."""
    row = json.loads(line)
    outcome = STATUS_OUTCOMES.get(row["status"])
    if outcome is None:
        outcome = "failed" if row["status"] == "failed" else "unknown"
    name = Name(row["writer"], row["queue"], row["number"])
    return Send(name, row["began"], row["ended"], outcome, row.get("why", ""))


def format_send(name: Name, began: float, ended: float, status: str, why: str = "") -> str:
    """The line that `parse_send` reads; `status` is a broker's status, `failed` or `unknown`."""
    row = {
        "event": "send",
        "writer": name.writer,
        "queue": name.queue,
        "number": name.number,
        "began": began,
        "ended": ended,
        "status": status,
        "why": why,
    }
    return json.dumps(row)


def by_queue(sends: Iterable[Send]) -> dict[int, list[Send]]:
    """The sends to each queue, in the order in which they began."""
    found: dict[int, list[Send]] = {}
    for send in sorted(sends, key=lambda send: send.began):
        found.setdefault(send.name.queue, []).append(send)
    return found
