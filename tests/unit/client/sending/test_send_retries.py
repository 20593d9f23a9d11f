"""What a producer does with every kind of answer, from brokers that answer as they are told."""

import asyncio

import pytest
from scripted import SILENT, World, play

from gantrymq.client.core.errors import SendFailed
from gantrymq.model import Message, SendResult
from gantrymq.protocol.command import Command

X = Message("T", "x")


@pytest.mark.parametrize("code", [1, 14, 16, 17, 204, 205])
def test_an_answer_that_another_broker_may_not_give_is_tried_three_times(code: int) -> None:
    """
    A response code that is worth a retry is tried on three brokers before SendFailed.
    """

    async def story(world: World) -> None:
        world.plan(code, code, code)
        async with world.producer() as producer:
            with pytest.raises(SendFailed, match=f"after 3 tries .* code {code}") as caught:
                await producer.send(X)
        assert world.tried() == "a1 b1 c1"
        assert caught.value.refused_code == code
        assert sorted(caught.value.tries) == ["a", "b", "c"]

    play(story)


@pytest.mark.parametrize("code", [2, 3, 13, 215, 1500])
def test_any_other_answer_fails_at_once(code: int) -> None:
    """
    Any other error code fails at the first broker.
    """

    async def story(world: World) -> None:
        world.plan(code)
        async with world.producer() as producer:
            with pytest.raises(SendFailed, match=f"code {code}: planned"):
                await producer.send(X)
        assert sorted(world.tried().split()) != ["a1", "b1", "c1"]
        assert sum(len(broker.sends) for broker in world.brokers) == 1

    play(story)


def test_a_try_that_succeeds_ends_it_and_keeps_the_id() -> None:
    """
    A retry that succeeds returns its result, and all tries have the same message id.
    """

    async def story(world: World) -> None:
        world.plan(1)
        world.brokers[2].plan = []
        async with world.producer() as producer:
            result = await producer.send(X)
        assert result.queue.broker_name == "c"
        sends = [command for broker in world.brokers for command in broker.sends]
        assert len({command.ext["i"] for command in sends}) == 1

    play(story)


def test_a_busy_broker_is_tried_again_only_by_those_who_ask() -> None:
    """
    SYSTEM_BUSY is retried only with `retry_when_busy`.
    """

    async def story(world: World) -> None:
        world.plan(2)
        world.brokers[2].plan = []
        async with world.producer(retry_when_busy=True) as producer:
            assert (await producer.send(X)).status == "SEND_OK"

    play(story)


@pytest.mark.parametrize(
    "code, status",
    [(10, "FLUSH_DISK_TIMEOUT"), (11, "SLAVE_NOT_AVAILABLE"), (12, "FLUSH_SLAVE_TIMEOUT")],
)
def test_a_message_stored_less_safely_is_stored_all_the_same(code: int, status: str) -> None:
    """
    A flush or slave timeout is a result with that status, and is not retried.
    """

    async def story(world: World) -> None:
        world.plan(code)
        async with world.producer() as producer:
            assert (await producer.send(X)).status == status
        assert sum(len(broker.sends) for broker in world.brokers) == 1

    play(story)


def test_stored_less_safely_can_mean_another_try() -> None:
    """
    With `retry_when_not_stored_ok` a timeout of flush or slave is retried on another broker.
    """

    async def story(world: World) -> None:
        world.plan(11)
        world.brokers[0].plan = []
        async with world.producer(retry_when_not_stored_ok=True) as producer:
            assert (await producer.send(X)).queue.broker_name == "a"
            world.plan(11, 11, 11)
            assert (await producer.send(X)).status == "SLAVE_NOT_AVAILABLE"

    play(story)


def test_a_message_once_stored_is_never_reported_as_failed() -> None:
    """
    If a retry fails after a try that stored the message, the result is that of the stored one.
    """

    async def story(world: World) -> None:
        async with world.producer(retry_when_not_stored_ok=True) as producer:
            world.plan_together(11, 13)
            assert (await producer.send(X)).status == "SLAVE_NOT_AVAILABLE"
        assert sum(len(broker.sends) for broker in world.brokers) == 2

    play(story)


def test_a_submitted_message_is_not_tried_again_after_an_answer() -> None:
    """
    `submit` does not retry after an error response.
    """

    async def story(world: World) -> None:
        world.plan(1)
        async with world.producer() as producer:
            with pytest.raises(SendFailed, match="after 1 try"):
                await producer.submit(X)

    play(story)


def test_a_submitted_message_is_tried_elsewhere_after_a_lost_connection() -> None:
    """
    `submit` retries on another broker after a lost connection.
    """

    async def story(world: World) -> None:
        world.plan(SILENT)
        async with world.producer() as producer:
            future = producer.submit(X)
            await asyncio.sleep(1.0)
            world.plan()
            silent = next(broker for broker in world.brokers if broker.sends)
            world.network.cut_port(int(silent.address.split(":")[1]))
            assert (await future).queue.broker_name != silent.name

    play(story)


def test_a_given_queue_is_tried_once_by_send_and_on_its_own_broker_by_submit() -> None:
    """
    With a queue given `send` tries once, and `submit` retries on the same broker.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            queue = (await producer.queues("T"))[0]
            world.plan(1)
            with pytest.raises(SendFailed, match="after 1 try"):
                await producer.send(X, queue=queue)
            assert world.tried() == "a1 b0 c0"
            world.plan(SILENT)
            future = producer.submit(X, queue=queue)
            await asyncio.sleep(1.0)
            world.network.cut_port(int(world.brokers[0].address.split(":")[1]))
            assert (await future).queue == queue
            assert world.tried() == "a3 b0 c0"

    play(story)


def test_all_tries_share_one_time_out() -> None:
    """
    All tries of a send share one timeout.
    """

    async def story(world: World) -> None:
        loop = asyncio.get_running_loop()
        for broker in world.brokers:
            broker.pause = 1.2
        world.plan(1, 1, 1)
        async with world.producer() as producer:
            await producer.queues("T")
            began = loop.time()
            with pytest.raises(SendFailed):
                await producer.send(X)
        assert loop.time() - began == pytest.approx(3.0, abs=0.1)

    play(story)


def test_a_slow_broker_is_avoided_for_a_time() -> None:
    """
    With `latency_fault` a slow broker is avoided for the time of the table.
    """

    async def story(world: World) -> None:
        slow = world.brokers[0]
        async with world.producer(latency_fault=True) as producer:
            slow.pause = 0.6
            for _ in range(12):
                await producer.send(X)
            assert len(slow.sends) == 1
            slow.pause = 0.0
            await asyncio.sleep(31)
            for _ in range(12):
                await producer.send(X)
            assert len(slow.sends) > 1

    play(story)


def test_when_every_broker_is_to_be_avoided_one_is_used_all_the_same() -> None:
    """
    With `latency_fault` a send succeeds even when all brokers are to be avoided.
    """

    async def story(world: World) -> None:
        for broker in world.brokers:
            broker.pause = 0.6
        async with world.producer(latency_fault=True) as producer:
            results = [await producer.send(X) for _ in range(9)]
        assert {result.status for result in results} == {"SEND_OK"}

    play(story)


def test_a_slow_broker_cannot_make_memory_grow() -> None:
    """
    `send_many` keeps no more messages pending than the window allows.
    """

    async def story(world: World) -> None:
        for broker in world.brokers:
            broker.pause = 1.0
        async with world.producer(window_messages=50) as producer:
            seen = []

            async def watch() -> None:
                while True:
                    seen.append(producer._running.window.count)
                    await asyncio.sleep(0.1)

            watching = asyncio.create_task(watch())
            results = await producer.send_many(X for _ in range(1000))
            watching.cancel()
        assert max(seen) == 50
        assert [type(result) for result in results] == [SendResult] * 1000

    play(story)


def test_a_queue_without_write_permission_is_not_used() -> None:
    """
    Queues without write permission get no messages.
    """

    async def story(world: World) -> None:
        route = world.route()
        route.queue_datas[0].perm = 4
        world.topics["T"] = route
        async with world.producer() as producer:
            for _ in range(8):
                await producer.send(X)
        assert world.tried() == "a0 b4 c4"

    play(story)


def test_an_order_topic_keeps_its_queues_while_a_broker_is_away() -> None:
    """
    An ordered topic keeps the queues of its fixed list while a broker is down.
    """

    async def story(world: World) -> None:
        route = world.route("a")
        route.order_topic_conf = "a:2;b:2"
        world.topics["T"] = route
        async with world.producer() as producer:
            queues = await producer.queues("T")
            assert [(queue.broker_name, queue.queue_id) for queue in queues] == [
                ("a", 0),
                ("a", 1),
                ("b", 0),
                ("b", 1),
            ]
            assert (await producer.send(X, queue=queues[1])).status == "SEND_OK"
            with pytest.raises(SendFailed, match="'b' is in no route"):
                await producer.send(X, queue=queues[2])
            assert (await producer.send(X)).queue.broker_name == "a"

    play(story)


class Signer:
    """A hook that signs requests and counts answers."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.answers: list[int] = []

    def before_request(self, address: str, command: Command) -> None:
        command.ext["Signature"] = "signed"
        self.requests.append(address)

    def after_response(self, address: str, command: Command, response: Command) -> None:
        self.answers.append(response.code)


def test_hooks_see_every_request_and_answer() -> None:
    """
    A hook sees every request before it is sent, and every response.
    """

    async def story(world: World) -> None:
        hook = Signer()
        async with world.producer(hooks=[hook]) as producer:
            await producer.send(X)
            await producer.submit(X)
            await producer.send_oneway(X)
            await producer.send_batch([X, X])
        sends = [command for broker in world.brokers for command in broker.sends]
        assert [command.ext.get("Signature") for command in sends] == ["signed"] * 4
        assert len(hook.answers) == len(hook.requests) - 1

    play(story)


def test_hooks_stay_with_those_who_passed_them() -> None:
    """
    Hooks apply only to the client that they were given to.
    """

    async def story(world: World) -> None:
        async with world.producer(hooks=[Signer()]) as one, world.producer() as other:
            assert one.instance is not other.instance
            await other.send(X)
        sends = [command for broker in world.brokers for command in broker.sends]
        assert [command.ext.get("Signature") for command in sends] == [None]

    play(story)
