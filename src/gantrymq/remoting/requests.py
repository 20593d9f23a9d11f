"""Requests as they were cut from the bytes of a connection, and what a server does with them first.

A request is a command, or a run of plain sends.
"""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from gantrymq.kernel import Request, SendAccess, SendRules, SendRun
from gantrymq.protocol.command import RESPONSE_FLAG, Command
from gantrymq.remoting.limits import ConnectionLimits, Refusals

log = logging.getLogger(__name__)


class PlainSends(Protocol):
    """Takes the plain sends of a server's connections, run by run."""

    def rules_for(self, connection: Any) -> tuple[SendRules | None, SendAccess | None]:
        """Which sends of a connection are plain at this moment, and who has to sign them."""

    def take(self, connection: Any, run: SendRun) -> bool:
        """Store and answer them; False if somebody has to look at each."""


class RequestGate(Protocol):
    """Holds the requests of a server's connections to its limits."""

    limits: ConnectionLimits
    refusals: Refusals

    def must_wait(self, connection: Any) -> bool:
        """Whether the server is congested; it calls `go_on` when it is this connection's turn."""

    def admitted(
        self, connection: Any, requests: Sequence[Request], count: int
    ) -> Sequence[Request]:
        """The requests of one turn that are served; all others have been refused."""

    def fell_behind(self, connection: Any) -> None:
        """The peer leaves many answers untaken; it, or another one, may be closed for that."""

    def caught_up(self, connection: Any) -> None:
        """The peer has taken them."""


def commands_of(requests: Sequence[Request]) -> list[Command]:
    """The same one by one, for what looks at each."""
    commands: list[Command] = []
    for request in requests:
        if isinstance(request, Command):
            commands.append(request)
        else:
            commands += request.commands()
    return commands


def note_slow_turn(took: float, requests: Sequence[Request], address: str) -> None:
    """Log a warning about requests whose answer kept other peers waiting.

    A client that only received responses, such as a reader of megabytes on a busy machine,
    delayed only itself.
    """
    commands = commands_of(requests)
    asked = dict.fromkeys(each.code for each in commands if not each.flag & RESPONSE_FLAG)
    level = logging.WARNING if asked else logging.DEBUG
    log.log(level, "held the loop %d ms: codes %s, %s", took * 1000, list(asked), address)
