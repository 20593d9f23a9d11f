"""Decisions on disk: one record in the op queue names one half message by its queue offset.

RocketMQ 5 puts several offsets into one record, which 4.9 cannot read; both can read one offset a
record. All decisions of a turn go in one append, so that each costs little.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.plurals import counted
from gantrymq.model import OP_HALF_TOPIC
from gantrymq.protocol.record import StoredMessage
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

OP_QUEUE: Final = 0
OPS_PER_APPEND_MAX: Final = 1_024
OPS_WAITING_MAX: Final = 200_000
"""Decisions kept for a disk that does not take them; the oldest go first."""
PATIENCE_SECONDS: Final = 0.005
"""How long a decision waits for a message that is put anyway; a write of its own costs more."""
RETRY_SECONDS: Final = 1.0
_PROPERTIES = b"TAGS\x01d\x02"

OnEnd = Callable[[Append], None]
Waiting = tuple[int, OnEnd | None]


def named_by(message: StoredMessage) -> list[int]:
    """The half queue offsets in a record of the op queue, written by 4.9 or 5."""
    if message.properties.get("TAGS") != "d":
        return []
    words = message.body.split(b",")
    return [int(word) for word in words if word.isdigit()]


class Decisions:
    """Stores decisions, all of a turn in one append."""

    def __init__(self, store: Store, clock: WallClock, store_host: bytes) -> None:
        self._store, self._clock, self._store_host = store, clock, store_host
        self._loop = asyncio.get_running_loop()
        self.waiting: list[Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._writing = 0

    @property
    def is_busy(self) -> bool:
        """Whether a decision is not stored yet."""
        return self._timer is not None or self._writing > 0

    def stop(self) -> None:
        """The broker stops: no more retries. After the next start it checks back for the rest."""
        self._stopped = True

    def note(self, offset: int, on_end: OnEnd | None = None) -> None:
        """Store that a half message is decided.

        `on_end` is called once with the outcome, and the caller may try again. Without it the
        decision is tried until it is stored: the message is already in its topic.
        """
        self.waiting.append((offset, on_end))
        if self._timer is None:
            self._timer = self._loop.call_later(PATIENCE_SECONDS, self.write)

    def write(self) -> None:
        """Store the waiting decisions now, in the same write as the append that follows."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self.waiting = self.waiting, []
        for start in range(0, len(waiting), OPS_PER_APPEND_MAX):
            some = waiting[start : start + OPS_PER_APPEND_MAX]
            self._writing += 1
            self._store.put(
                Append(
                    OP_HALF_TOPIC,
                    OP_QUEUE,
                    b"",
                    batch=[(0, b"%d" % offset, _PROPERTIES) for offset, _ in some],
                    born_ms=self._clock.now_ms(),
                    born_host=self._store_host,
                    wait=False,
                    reply=lambda append, some=some: self._written(append, some),  # type: ignore[misc]
                )
            )

    def _written(self, append: Append, some: list[Waiting]) -> None:
        self._writing -= 1
        for _, on_end in some:
            if on_end is not None:
                on_end(append)
        if append.status.is_stored:
            return
        said = counted(len(some), "decision")
        log.warning("%s about transactions not stored: %s", said, append.error)
        again = [one for one in some if one[1] is None]
        if not again or self._stopped:
            return
        self.waiting = (again + self.waiting)[-OPS_WAITING_MAX:]
        if self._timer is None:
            self._timer = self._loop.call_later(RETRY_SECONDS, self.write)
