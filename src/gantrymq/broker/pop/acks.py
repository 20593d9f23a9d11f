"""Collects acknowledgements for the revive log: one record a turn and checkpoint."""

import asyncio

from gantrymq.broker.pop.checkpoints import PopCheckpoint
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append


class AckAnswer:
    """One ack request; it is answered when all its acknowledgements are stored."""

    __slots__ = ("command", "connection", "error", "parts")

    def __init__(self, connection: Connection, command: Command, parts: int) -> None:
        self.connection, self.command, self.parts = connection, command, parts
        self.error = ""

    def settled(self, error: str) -> None:
        """One part is stored, or failed with an error; the last part answers the request."""
        self.parts -= 1
        self.error = self.error or error
        if self.parts <= 0:
            code = ResponseCode.SYSTEM_ERROR if self.error else ResponseCode.SUCCESS
            self.connection.reply(self.command, code, remark=self.error or None)


class Acks:
    """Collects the acknowledgements of a turn of the loop: 32 of one pop become one record."""

    def __init__(self, revive_log: ReviveLog) -> None:
        self._log = revive_log
        self._turn: dict[PopCheckpoint, tuple[int, list[AckAnswer]]] = {}

    def add(self, checkpoint: PopCheckpoint, bits: int, answer: AckAnswer) -> None:
        """Acknowledge messages of an open checkpoint; `answer` hears when that is stored."""
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._write)
        known, answers = self._turn.get(checkpoint, (0, []))
        answers.append(answer)
        self._turn[checkpoint] = known | bits, answers
        checkpoint.acking |= bits

    def _write(self) -> None:
        turn, self._turn = self._turn, {}
        for checkpoint, (bits, answers) in turn.items():
            self._settle(checkpoint, bits, answers)

    def _settle(self, checkpoint: PopCheckpoint, bits: int, answers: list[AckAnswer]) -> None:
        def done(record: Append) -> None:
            error = "" if record.status.is_stored else record.error or record.status.name
            for answer in answers:
                answer.settled(error)

        self._log.settle(checkpoint, bits, done)
