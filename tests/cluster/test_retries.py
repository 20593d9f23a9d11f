"""Retries and the way to the dead letters: limits, delays, ids, and the reason that travels."""

import asyncio
import logging
from pathlib import Path

import pytest
from peer import Run

from gantrymq import ConsumerOptions, Delivery, GroupConfig, Message, ProducerOptions
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.consume.queues.pull_request import pull_raw
from gantrymq.client.messages.failures import Failure, because, failure_in, failure_of
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue, dead_topic, retry_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
SECOND = 1
"""Delay level of one second."""


class NoMoney(Exception):
    """A failure of the business kind."""


async def send(cluster: Cluster, body: str | bytes, **more: object) -> str:
    async with cluster.producer() as producer:
        return (await producer.send(Message("orders", body, **more))).msg_id  # type: ignore[arg-type]


async def next_of(consumer: Consumer) -> Delivery:
    async with asyncio.timeout(30):
        return await anext(consumer)


async def dead_letters(cluster: Cluster, group: str, count: int) -> list[Received]:
    """Wait until so many dead letters are there."""
    queue = Queue(dead_topic(group), "broker-a", 0)
    async with cluster.admin() as admin, asyncio.timeout(30):
        while True:
            try:
                pulled = await pull_raw(admin.instance, group, queue, 0)
            except Exception:
                pulled = None
            found = read_records(pulled.body) if pulled is not None else []
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


class TestTheReason:
    def test_of_an_exception_travels_with_every_copy(self, run: Run) -> None:
        """
        Type, text and fingerprint come back with the retry and lie beside the dead letter.
        """

        async def work(cluster: Cluster) -> None:
            await send(cluster, "one book")
            seen: list[Failure | None] = []
            async with cluster.consumer("g", options=FIRST, max_retries=1) as consumer:

                @consumer.handler
                async def pay(message: Delivery) -> None:
                    seen.append(failure_in(message.properties))
                    try:
                        raise NoMoney("card 4711 refused")
                    except NoMoney as error:
                        message.failure = failure_of(error)
                        await message.retry(SECOND, reason=None)

                consumer.subscribe("orders")
                (dead,) = await dead_letters(cluster, "g", 1)
            assert seen[0] is None
            assert seen[1] is not None
            assert seen[1] == failure_in(dead.properties)
            assert ("test_retries.NoMoney", "card 4711 refused") == seen[1][:2]
            expected = ("orders", dead.msg_id)
            names = ("DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID")
            assert expected == tuple(dead.properties[name] for name in names)

        run(work)

    def test_is_what_the_handler_said(self, run: Run) -> None:
        """
        `dead(reason=...)` is kept; separators in it do no harm, and it is cut at 500 characters.
        """

        async def work(cluster: Cluster) -> None:
            await send(cluster, "one book")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                await (await next_of(consumer)).dead(reason="no such book\x02\x01" + "x" * 600)
                (dead,) = await dead_letters(cluster, "g", 1)
            failure = failure_in(dead.properties)
            assert failure is not None
            assert (500, "no such book  xx") == (len(failure.reason), failure.reason[:16])

        run(work)

    def test_of_a_plain_handler_is_its_exception(self, run: Run) -> None:
        """
        Nothing has to be done for it: what a handler raises is what is found.
        """

        async def work(cluster: Cluster) -> None:
            await send(cluster, "one book")
            async with cluster.consumer("g", options=FIRST, max_retries=0) as consumer:

                @consumer.handler
                def pay(message: Delivery) -> None:
                    raise NoMoney("card refused")

                consumer.subscribe("orders")
                (dead,) = await dead_letters(cluster, "g", 1)
            failure = failure_in(dead.properties)
            assert failure is not None
            assert ("test_retries.NoMoney", "card refused") == failure[:2]

        run(work)


class TestTheFingerprint:
    def test_is_the_same_for_the_same_code_and_another_for_other_code(self) -> None:
        """
        Neither the message's text nor the line counts; the type and the way there do.
        """

        def fail(text: str, kind: type[Exception] = NoMoney) -> str:
            try:
                raise kind(text)
            except Exception as error:
                return failure_of(error).fingerprint

        def elsewhere(text: str) -> str:
            try:
                raise NoMoney(text)
            except NoMoney as error:
                return failure_of(error).fingerprint

        assert fail("a") == fail("b")
        assert 3 == len({fail("a"), fail("a", ValueError), elsewhere("a")})

    def test_of_a_reason_does_not_count_its_values(self) -> None:
        """
        Numbers, ids and what stands in quotes differ from letter to letter; words do not.
        """
        reasons = (
            "order 17 of 'ann' is negative", "order 4711 of 'bob' is negative",
            "order A17-3f of \"don't\" is negative", "order 17 of 'ann' is late",
        )  # fmt: skip
        first, second, third, other = (
            failure.fingerprint for failure in map(because, reasons) if failure
        )

        assert first == second == third != other

    def test_does_not_count_how_deep_a_recursion_went(self) -> None:
        """
        One defect, one fingerprint.
        """

        def dive(depth: int) -> None:
            if not depth:
                raise RecursionError("too deep")
            dive(depth - 1)

        def fingerprint(depth: int) -> str:
            try:
                dive(depth)
            except RecursionError as error:
                return failure_of(error).fingerprint
            raise AssertionError

        assert fingerprint(3) == fingerprint(30)

    def test_needs_no_text_that_can_be_made(self) -> None:
        """
        An exception whose own message fails is still a failure with a name.
        """

        class Broken(Exception):
            def __str__(self) -> str:
                raise ValueError

        assert "(its message cannot be made: ValueError)" == failure_of(Broken()).text


class TestTheLimit:
    @pytest.mark.parametrize("own", [None, 0, 2])
    def test_is_the_consumers_own_or_else_the_groups(self, run: Run, own: int | None) -> None:
        """
        The group allows one retry; a consumer that says otherwise is followed.
        """

        async def work(cluster: Cluster) -> None:
            await send(cluster, "one book")
            async with cluster.admin() as admin:
                await admin.update_group(GroupConfig(group_name="g", retry_max_times=1))
            choice = {} if own is None else {"max_retries": own}
            tries: list[int] = []
            async with cluster.consumer("g", options=FIRST, **choice) as consumer:

                @consumer.handler
                async def fail(message: Delivery) -> None:
                    tries.append(message.reconsume_times)
                    await message.retry(SECOND)

                consumer.subscribe("orders")
                await dead_letters(cluster, "g", 1)
            assert list(range((1 if own is None else own) + 1)) == tries

        run(work)

    def test_members_that_differ_are_reported(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        """
        The fate of a message would depend on who gets it: the broker says so, once.
        """

        async def work(cluster: Cluster) -> None:
            caplog.clear()
            for limit in (3, 5, 3, 5):
                await send(cluster, "one book")
                async with cluster.consumer("g", options=FIRST, max_retries=limit) as consumer:
                    consumer.subscribe("orders")
                    await (await next_of(consumer)).dead()
            said = [r.getMessage() for r in caplog.records if "numbers of retries" in r.message]
            assert 1 == len(said)
            assert "members of group g allow different numbers of retries: 3 (" in said[0]

        with caplog.at_level(logging.WARNING):
            run(work)


class TestTheCopies:
    def test_keep_the_id_and_remember_the_first_record(self, run: Run) -> None:
        """
        The producer's id stays; each copy is a record of its own; ORIGIN_MESSAGE_ID is the first.
        """

        async def work(cluster: Cluster) -> None:
            msg_id = await send(cluster, "one book", keys=["order-1"], tags="paid")
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders", tags="paid")
                first = await next_of(consumer)
                await first.retry(SECOND)
                again = await next_of(consumer)
                await again.dead()
                (dead,) = await dead_letters(cluster, "g", 1)
            assert [msg_id] * 3 == [first.msg_id, again.msg_id, dead.msg_id]
            assert 3 == len({first.offset_msg_id, again.offset_msg_id, dead.offset_msg_id})
            for copy in (again, dead):
                assert first.offset_msg_id == copy.properties["ORIGIN_MESSAGE_ID"]
            assert (("order-1",), "paid", "orders") == (again.keys, again.tags, again.topic)
            assert (1, 2) == (again.reconsume_times, dead.reconsume_times)

        run(work)

    @pytest.mark.parametrize("size", [4 * 1024 * 1024, 100])
    def test_of_a_message_at_the_limit_still_get_through(self, run: Run, size: int) -> None:
        """
        The largest body, and properties that nearly fill their field: both can be retried and die.
        What is only good to know is left out where there is no room.
        """

        async def work(cluster: Cluster) -> None:
            big = "x" * (32_767 - 600) if size == 100 else "x"
            body = b"." * size
            unpacked = ProducerOptions(compress_over_bytes=size + 1)
            async with cluster.producer(options=unpacked) as producer:
                message = Message("orders", body, properties={"big": big}, keys=["k"])
                assert "SEND_OK" == (await producer.send(message)).status
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                await (await next_of(consumer)).retry(SECOND, reason="why " * 100)
                again = await next_of(consumer)
                await again.dead(reason="why " * 100)
                (dead,) = await dead_letters(cluster, "g", 1)
            assert (body, big) == (dead.body, dead.properties["big"])
            assert ("orders", 1) == (again.topic, again.reconsume_times)

        run(work, mapped_file_size_commit_log=16 * 1024 * 1024)


class TestTheDelays:
    def test_grow_to_two_hours_and_stay_there(self) -> None:
        """
        10s 30s 1m ... 1h 2h, and 2 h for every retry beyond the sixteenth.
        """
        minute, hour = 60, 3600
        expected = [10, 30, *[n * minute for n in range(1, 11)], 20 * minute, 30 * minute, hour]
        expected += [2 * hour] * 3

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await send(cluster, "one book")
                loop, waits = asyncio.get_running_loop(), []
                async with cluster.consumer("g", options=FIRST, max_retries=18) as consumer:
                    consumer.subscribe("orders")
                    message = await anext(consumer)
                    for _ in range(18):
                        since = loop.time()
                        await message.retry()
                        message = await anext(consumer)
                        waits.append(round(loop.time() - since))
                    await message.retry()
                    (dead,) = await dead_letters(cluster, "g", 1)
                assert expected == waits
                assert 19 == dead.reconsume_times

        simulate(work)


class TestAHandlerThatHangs:
    def test_for_a_quarter_of_an_hour_its_message_is_sent_back(self) -> None:
        """
        At the 10 s level, with the reason; others go on meanwhile, and nothing is deleted.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                await send(cluster, "stuck")
                loop = asyncio.get_running_loop()
                began, done = loop.time(), []
                async with cluster.consumer("g", options=FIRST) as consumer:

                    @consumer.handler
                    async def hang(message: Delivery) -> None:
                        if not message.reconsume_times and message.body == b"stuck":
                            await asyncio.sleep(10**6)
                        failure = failure_in(message.properties)
                        why = failure.reason if failure else ""
                        done.append((message.body, why, loop.time() - began))

                    consumer.subscribe("orders")
                    await asyncio.sleep(1)
                    await send(cluster, "quick")
                    await asyncio.sleep(15 * 60 + 100)
                assert [(b"quick", ""), (b"stuck", "not finished within 900 s")] == [
                    row[:2] for row in done
                ]
                assert done[0][2] < 2
                assert 910 <= done[1][2] <= 900 + 60 + 11

        simulate(work)


class TestABroadcastingGroup:
    def test_has_no_retries(self, run: Run, tmp_path: Path) -> None:
        """
        A failure is logged and lost: neither a retry topic nor dead letters come of it.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            directory = str(tmp_path / str(id(cluster)))
            options = ConsumerOptions(
                consume_from_where="CONSUME_FROM_FIRST_OFFSET", offset_dir=directory
            )
            seen: list[bytes] = []
            for body in ("bad", "good"):
                await send(cluster, body)
            async with cluster.consumer("g", broadcast=True, options=options) as consumer:

                @consumer.handler
                async def fail(message: Delivery) -> None:
                    seen.append(message.body)
                    if message.body == b"bad":
                        raise NoMoney

                consumer.subscribe("orders")
                async with asyncio.timeout(30):
                    while b"good" not in seen:
                        await asyncio.sleep(0.05)
            assert [b"bad", b"good"] == sorted(seen)
            async with cluster.admin() as admin:
                queue = Queue(retry_topic("g"), "broker-a", 0)
                assert dead_topic("g") not in await admin.topics()
                assert retry_topic("g") not in await admin.topics() or 0 == await admin.max_offset(
                    queue
                )

        run(work)
