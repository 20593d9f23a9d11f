"""Who answers the requests that brokers send to a client."""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

RequestHandler = Callable[[Connection, Command], Awaitable[Command | None]]
"""Answers a request; None leaves it to the next handler, for instance of another group."""


class RequestHandlers:
    """The handlers of one client id, by request code; each request is answered in a task."""

    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._spawn = spawn
        self._handlers: dict[int, list[RequestHandler]] = {}

    def add(self, code: int, handler: RequestHandler) -> Callable[[], None]:
        """Pass requests with this code to `handler`; returns the function that removes it."""
        handlers = self._handlers.setdefault(code, [])
        handlers.append(handler)

        def remove() -> None:
            if handler in handlers:
                handlers.remove(handler)

        return remove

    def answer(self, connection: Connection, command: Command) -> None:
        """Answer a request with what the first handler says that does not return None."""
        handlers = self._handlers.get(command.code)
        if not handlers:
            remark = f" request type {command.code} not supported"
            connection.reply(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        else:
            self._spawn(self._handle(list(handlers), connection, command))

    async def _handle(
        self, handlers: list[RequestHandler], connection: Connection, command: Command
    ) -> None:
        answer: Command | None = None
        try:
            for handler in handlers:
                answer = await handler(connection, command)
                if answer is not None:
                    break
        except Exception as error:
            log.exception("request %d from %s failed", command.code, connection.address)
            answer = Command(
                code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}"
            )
        if answer is None:
            answer = Command(code=ResponseCode.SYSTEM_ERROR, remark="no client here has that group")
        connection.reply(
            command, answer.code, ext=answer.ext, remark=answer.remark, body=answer.body
        )
