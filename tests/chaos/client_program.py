"""The program on the clients' host: writes, reads and asks with our own client.

The argument is the name server. A line on stdin is a JSON object with `do`, an `id` and arguments;
a line on stdout answers it with the same `id` and `value` or `error`. Writing goes on beside other
requests, until the file named `stop` is there, and logs each send to the file `log`.
"""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TextIO

from chaos.history import Name, format_send, refusal_outcome
from gantrymq import (
    Admin,
    ClientError,
    ClientOptions,
    GantryError,
    Message,
    Producer,
    PullConsumer,
    Queue,
    SendFailed,
)
from gantrymq.base.network import ConnectFailed

PAUSE_SECONDS = 0.005
"""Between two messages of a queue: the machine is shared by several clusters."""
BACKOFF_SECONDS = 0.05
"""After a send that failed."""
QUIET_SECONDS = 0.4
"""A queue that brings nothing new for so long is read to its end."""
PULL_COUNT = 1_000
READ_SECONDS_MAX = 20.0


def _status_of(error: BaseException) -> str:
    """`failed` when the message is certainly not stored, else `unknown`."""
    if isinstance(error, SendFailed):
        if error.refused_code is not None:
            return refusal_outcome(error.refused_code)
        cause = error.__cause__
        never_left = not error.tries or isinstance(cause, ConnectFailed)
        return "failed" if never_left else "unknown"
    return "failed" if isinstance(error, ClientError) else "unknown"


def open_log(path: str) -> TextIO:
    return Path(path).open("w")


def is_there(path: str) -> bool:
    return Path(path).exists()


class Program:
    """What the lines of stdin ask for."""

    def __init__(self, stack: AsyncExitStack, namesrv: str) -> None:
        self._stack, self._namesrv = stack, namesrv
        self._producer: Producer | None = None
        self._readers = 0

    async def create(self, topic: str, queues: int) -> None:
        async with Admin(self._namesrv) as admin:
            await admin.create_topic(topic, queues=queues)

    async def brokers(self, name: str) -> dict[str, str]:
        """The addresses of a broker name, by broker id."""
        async with Admin(self._namesrv) as admin:
            table = (await admin.cluster()).broker_addr_table
        return {str(key): value for key, value in table[name].broker_addrs.items()}

    async def in_sync(self, address: str) -> int:
        async with Admin(self._namesrv) as admin:
            return (await admin.ha_status(address)).in_sync_slave_nums

    async def holders(self, name: str, topic: str) -> int:
        """How many members of a broker name are known to the name server and have the topic."""
        async with Admin(self._namesrv) as admin:
            table = (await admin.cluster()).broker_addr_table
            addresses = table[name].broker_addrs.values()
            return sum([topic in await admin.topic_configs(address) for address in addresses])

    async def write(
        self, writer: str, topic: str, broker: str, queues: list[int], log: str, stop: str
    ) -> None:
        if self._producer is None:
            self._producer = await self._stack.enter_async_context(
                Producer(self._namesrv, group="chaos")
            )
        with open_log(log) as lines:
            await asyncio.gather(
                *(self._write(writer, Queue(topic, broker, queue), lines, stop) for queue in queues)
            )

    async def _write(self, writer: str, queue: Queue, lines: TextIO, stop: str) -> None:
        assert self._producer is not None
        number = 0
        while not is_there(stop):
            name = Name(writer, queue.queue_id, number)
            number += 1
            began, why = time.monotonic(), ""
            try:
                message = Message(queue.topic, str(name).encode())
                status = (await self._producer.send(message, queue=queue)).status
            except GantryError as error:
                status, why = _status_of(error), f"{error}"
            lines.write(format_send(name, began, time.monotonic(), status, why) + "\n")
            lines.flush()
            await asyncio.sleep(BACKOFF_SECONDS if why else PAUSE_SECONDS)

    async def read(self, topic: str, broker: str, queues: int) -> dict[int, list[str]]:
        """All that each queue has; a reader that begins now, and tries again when it fails."""
        end = time.monotonic() + READ_SECONDS_MAX
        while True:
            self._readers += 1
            own = ClientOptions(instance_name=f"reader-{self._readers}")  # with routes of its own
            try:
                async with PullConsumer(self._namesrv, group="reader", client=own) as consumer:
                    each = [Queue(topic, broker, queue) for queue in range(queues)]
                    found = await asyncio.gather(*(_read_queue(consumer, one) for one in each))
                    return dict(enumerate(found))
            except GantryError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(BACKOFF_SECONDS)


async def _read_queue(consumer: PullConsumer, queue: Queue) -> list[str]:
    bodies: list[str] = []
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < QUIET_SECONDS:
        found = (await consumer.pull(queue, len(bodies), max_count=PULL_COUNT)).messages
        if found:
            bodies += [message.body.decode("utf-8", "replace") for message in found]
            quiet_since = time.monotonic()
        else:
            await asyncio.sleep(0.05)
    return bodies


async def _answer(program: Program, request: dict[str, Any]) -> None:
    number, verb = request.pop("id"), request.pop("do")
    answer: dict[str, object] = {"id": number}
    try:
        answer["value"] = await getattr(program, verb)(**request)
    except Exception as error:
        answer["error"] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def main(namesrv: str) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        program = Program(stack, namesrv)
        under_way: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            task = tasks.create_task(_answer(program, json.loads(line)))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        for task in under_way:  # nobody is there any more who would end the writers
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
