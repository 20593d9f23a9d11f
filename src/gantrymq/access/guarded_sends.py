"""Plain sends where each request has to be signed."""

from typing import Any

from gantrymq.access.guard import AccessGuard
from gantrymq.kernel import SendAccess, SendRules, SendRun
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.requests import PlainSends


class GuardedSends:
    """Takes what the guard lets through without a look at each request.

    The guard decides on the first send of a connection to a topic; further ones are taken if the
    kernel finds their signature right. A wrong one goes to the guard, which refuses it.
    """

    def __init__(self, sends: PlainSends, guard: AccessGuard[Any, Any]) -> None:
        self._sends, self._guard = sends, guard

    def rules_for(self, connection: Connection) -> tuple[SendRules | None, SendAccess | None]:
        """Nothing is plain before the guard has decided something."""
        passes, access = self._guard.lets_through(connection)
        return (self._sends.rules_for(connection)[0], access) if passes else (None, None)

    def take(self, connection: Connection, run: SendRun) -> bool:
        """Store and answer them; False if somebody has to look at each."""
        return self._sends.take(connection, run)
