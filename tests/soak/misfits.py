"""Clients that no server wishes for: slow, dead, silent and rude ones.

Each kind is a handful of connections that are made again when the broker closes them or is killed.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from gantrymq.base.background import Background
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command, encode
from gantrymq.protocol.headers.messages import PullRequest

AGAIN_SECONDS: Final = 2.0
MESSAGES_ASKED: Final = 4_000
"""Of the topic that nobody reads: it has so many from the beginning, so that every life of the
broker is asked for the same bytes."""
DRIP_SECONDS: Final = 1.0
OF_EACH_KIND: Final = 8

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Misfits:
    """All of them, from `start` until `stop`."""

    def __init__(self, host: str, port: int, topic: str) -> None:
        self._host, self._port, self._topic = host, port, topic
        self._background = Background("misfits")
        self.made: Counter[str] = Counter()
        """Connections by kind."""

    def start(self) -> None:
        kinds: list[Callable[[Streams], Awaitable[None]]] = [
            self._silent,
            self._dripping,
            self._not_reading,
            self._rude,
        ]
        for kind in kinds * OF_EACH_KIND:
            self._background.spawn(self._again_and_again(kind))

    async def stop(self) -> None:
        await self._background.close()

    async def _again_and_again(self, be: Callable[[Streams], Awaitable[None]]) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                streams = await asyncio.open_connection(self._host, self._port)
                self.made[be.__name__.strip("_")] += 1
                try:
                    await be(streams)
                finally:
                    streams[1].transport.abort()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _silent(self, streams: Streams) -> None:
        """Connects and says nothing."""
        await streams[0].read(1)

    async def _dripping(self, streams: Streams) -> None:
        """Sends a frame a byte a second, and never its end."""
        frame = encode(Command(code=RequestCode.SEND_MESSAGE_V2, ext={"b": self._topic}))
        while not streams[0].at_eof():
            for byte in frame[:-1]:
                streams[1].write(bytes([byte]))
                await streams[1].drain()
                await asyncio.sleep(DRIP_SECONDS)
            await streams[0].read(1)

    async def _not_reading(self, streams: Streams) -> None:
        """Asks for megabytes and takes none of them."""
        request = PullRequest(
            consumer_group="soak-misfit", topic=self._topic, queue_id=0, queue_offset=0,
            max_msg_nums=MESSAGES_ASKED, subscription="*", sys_flag=4, expression_type="TAG",
        )  # fmt: skip
        streams[0]._transport.pause_reading()  # type: ignore[attr-defined]
        while True:
            command = Command(code=RequestCode.PULL_MESSAGE, ext=request.to_ext())
            streams[1].write(encode(command))
            await streams[1].drain()
            await asyncio.sleep(DRIP_SECONDS)

    async def _rude(self, streams: Streams) -> None:
        """Sends half a message and hangs up."""
        frame = encode(
            Command(code=RequestCode.SEND_MESSAGE_V2, ext={"b": self._topic}, body=bytes(999))
        )
        streams[1].write(frame[: len(frame) // 2])
        await streams[1].drain()
