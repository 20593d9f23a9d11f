"""Who is logged in: sessions in memory, each under a hash of the token that its browser has.

They end after a time without a request, after a longer time in any case, and with the console.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gantrymq.base.background import Background
from gantrymq.console.access.user import ConsoleUser
from gantrymq.console.clusters import Clusters

IDLE_SECONDS: Final = 8 * 3_600.0
LIFE_SECONDS: Final = 7 * 86_400.0
SESSIONS_MAX: Final = 1_000
"""Beyond it the one that was silent for longest ends."""


@dataclass
class Session:
    """One login."""

    user: ConsoleUser
    clusters: Clusters
    """The clients with which it asks: the console's, or its own with its own key."""
    is_valid: Callable[[], bool]
    """Whether who logged in may still come in."""
    began: float
    used: float
    has_ended: bool = False

    def is_live(self) -> bool:
        """Whether it goes on: what is still under way asks, such as a tail."""
        return not self.has_ended and self.is_valid()


class LoginSessions:
    """All logins. `own` are the clients of the console, which no session closes."""

    def __init__(self, own: Clusters, background: Background) -> None:
        self._own, self._background = own, background
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def add(self, token: str, session: Session) -> None:
        """Keep a session under a token that nobody can guess."""
        self.remove(token)
        self._sessions[_key(token)] = session
        while len(self._sessions) > SESSIONS_MAX:
            self._end(self._sessions.popitem(last=False)[1])

    def find(self, token: str, now: float) -> Session | None:
        """The session of a token, if it goes on."""
        key = _key(token)
        session = self._sessions.get(key)
        if session is None:
            return None
        is_old = now - session.used > IDLE_SECONDS or now - session.began > LIFE_SECONDS
        if is_old or not session.is_valid():
            self._end(self._sessions.pop(key))
            return None
        session.used = now
        self._sessions.move_to_end(key)
        return session

    def remove(self, token: str) -> None:
        """End a session."""
        session = self._sessions.pop(_key(token), None)
        if session is not None:
            self._end(session)

    async def close(self) -> None:
        """End all."""
        while self._sessions:
            session = self._sessions.popitem()[1]
            if session.clusters is not self._own:
                await session.clusters.close()

    def _end(self, session: Session) -> None:
        session.has_ended = True
        if session.clusters is not self._own:
            self._background.spawn(session.clusters.close())


def _key(token: str) -> bytes:
    """What is kept of a token: who reads the memory of the process cannot use it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
