"""Plain sends on a server's connections: gathered where somebody takes them, and in order."""

import asyncio
from collections.abc import Awaitable, Callable

from gantrymq.kernel import QueueTail, SendRules, SendRun, encode_records
from gantrymq.model import TopicConfig
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import ONEWAY_FLAG, Command
from gantrymq.remoting.admission import ServerAdmission
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import ConnectionLimits
from gantrymq.remoting.server import Guard, HandlerTable, Server
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"
PULL = RequestCode.PULL_MESSAGE
TOPICS = {"orders": TopicConfig(topic_name="orders")}


class Sends:
    """Takes runs, or refuses to, and answers when it is told to."""

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.rules: SendRules | None = SendRules(TOPICS, b"", bytes(8), 512, 16_000, 16_000)
        self.seen: list[str] = []
        self.runs: list[SendRun] = []

    def rules_for(self, connection: Connection) -> tuple[SendRules | None, None]:
        return self.rules, None

    def take(self, connection: Connection, run: SendRun) -> bool:
        self.seen.append(f"run of {len(run)}")
        run.connection = connection
        if self.takes:
            self.runs.append(run)
        return self.takes

    def answer_one(self, connection: Connection, command: Command) -> None:
        self.seen.append(f"command {command.code}")
        connection.reply(command, body=command.body)

    def answer_runs(self) -> None:
        """As if each message were the first one of its queue."""
        for run in self.runs:
            run.place({}, Queue)
            encode_records([run], 0, 1_700_000_000_000, bytes(8))
            run.connection.reply_frames(run.answers(0), run.asked)


class Queue(QueueTail):
    """The end of an empty queue."""

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic_bytes, self.next = topic.encode(), 0


def send(number: int = 0, flag: int = 0, topic: str = "orders") -> Command:
    ext = {"b": topic, "e": "0", "g": "1700000000000", "i": f"UNIQ_KEY\x01K{number}"}
    return Command(code=RequestCode.SEND_MESSAGE_V2, ext=ext, flag=flag, body=b"hello")


def with_server(
    sends: Sends,
    work: Callable[[Server, Connection], Awaitable[None]],
    guard: Guard | None = None,
    limits: ConnectionLimits | None = None,
) -> None:
    """A server with this taker of runs and one connection to it, in virtual time."""

    async def main() -> None:
        network = MemoryNetwork()
        hot = {int(RequestCode.SEND_MESSAGE_V2): sends.answer_one, int(PULL): sends.answer_one}
        admission = ServerAdmission(limits or ConnectionLimits())
        server = Server(HandlerTable(hot, guard=guard, sends=sends), network, admission=admission)
        port = await server.start(HOST, 0)
        connection = await network.connect(HOST, port, Connection, 3)
        await work(server, connection)
        await server.stop()

    simulate(main)


def test_neighbours_are_one_run_and_keep_their_order() -> None:
    """
    What is no plain send ends a run; all are served in the order in which they came, and the
    answers of a run find their callers.
    """
    sends = Sends()

    async def work(server: Server, connection: Connection) -> None:
        asked = [send(1), send(2), Command(code=PULL), send(3), send(4, topic="unknown"), send(5)]
        calls = [connection.submit(each, 5) for each in asked]
        await calls[4]
        assert sends.seen == ["run of 2", "command 11", "run of 1", "command 310", "run of 1"]
        (served,) = server.connections
        assert served.pending == 4
        sends.answer_runs()
        answers = await asyncio.gather(*calls)
        keys = [answer.ext.get("transactionId") for answer in answers]
        assert keys == ["K1", "K2", None, "K3", None, "K5"]
        assert served.pending == 0

    with_server(sends, work)


def test_a_run_that_nobody_takes_is_served_one_by_one() -> None:
    """
    Each of its sends gets the answer of the handler.
    """
    sends = Sends(takes=False)

    async def work(server: Server, connection: Connection) -> None:
        answers = await asyncio.gather(*(connection.submit(send(n), 5) for n in range(3)))
        assert [b"hello"] * 3 == [answer.body for answer in answers]
        assert sends.seen == ["run of 3", *["command 310"] * 3]

    with_server(sends, work)


def test_one_way_sends_of_a_run_wait_for_no_answer() -> None:
    """
    They are not counted as pending, and no frame answers them.
    """
    sends = Sends()

    async def work(server: Server, connection: Connection) -> None:
        connection.oneway(send(1))
        call = connection.submit(send(2), 5)
        connection.oneway(send(3, flag=ONEWAY_FLAG))
        await asyncio.sleep(0.1)
        (served,) = server.connections
        assert (sends.seen, served.pending) == (["run of 3"], 1)
        sends.answer_runs()
        assert (await call).ext["transactionId"] == "K2"
        assert served.pending == 0

    with_server(sends, work)


def test_without_rules_there_are_no_runs() -> None:
    """
    The guard sees every send by itself, until the taker of runs has rules for the connection.
    """
    sends, seen = Sends(), []
    rules, sends.rules = sends.rules, None

    async def work(server: Server, connection: Connection) -> None:
        await asyncio.gather(*(connection.submit(send(n), 5) for n in range(2)))
        sends.rules = rules
        calls = [connection.submit(send(n), 5) for n in range(2, 4)]
        await asyncio.sleep(0.1)
        sends.answer_runs()
        await asyncio.gather(*calls)

    with_server(sends, work, guard=lambda connection, command: seen.append(command.ext["i"]))
    assert seen == ["UNIQ_KEY\x01K0", "UNIQ_KEY\x01K1"]
    assert sends.seen == [*["command 310"] * 2, "run of 2"]


def test_a_limit_on_requests_holds_for_the_sends_of_a_run() -> None:
    """
    What is over the limit is refused with its name, and the others are served.
    """
    sends = Sends()
    limits = ConnectionLimits(max_requests_per_connection=2)

    async def work(server: Server, connection: Connection) -> None:
        answers = await asyncio.gather(*(connection.submit(send(n), 5) for n in range(4)))
        assert [answer.code for answer in answers] == [0, 0, 2, 2]
        assert "maxRequestsPerConnection" in (answers[3].remark or "")
        assert sends.seen == ["command 310"] * 2

    with_server(sends, work, limits=limits)


def test_a_stopping_server_answers_the_runs_that_it_took() -> None:
    """
    It closes its connections when the last answer of a run has left.
    """
    sends = Sends()

    async def work(server: Server, connection: Connection) -> None:
        call = connection.submit(send(7), 5)
        await asyncio.sleep(0.1)
        stopping = asyncio.ensure_future(server.stop())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        sends.answer_runs()
        assert (await call).ext["transactionId"] == "K7"
        await stopping

    with_server(sends, work)
