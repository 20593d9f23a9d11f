"""Transactions as a producer's user sees them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.client.core.errors import MessageRefused
from gantrymq.client.core.instance import Hook
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.produce.check_back import Unfinished
from gantrymq.client.produce.transactions import Decision, HalfNotSafe, Transaction, decision_of
from gantrymq.model import Message, Queue
from gantrymq.protocol.command import Command
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

Story = Callable[[Cluster], Coroutine[Any, Any, Any]]


def in_cluster(story: Story, **options: Any) -> Any:
    async def main() -> Any:
        async with Cluster(memory=True, **options) as cluster:
            await cluster.create_topic("orders", queues=1)
            return await story(cluster)

    return simulate(main)


def stored(cluster: Cluster, topic: str = "orders") -> int:
    return cluster.broker().store.queues.max_offset(topic, 0)


class TestBlock:
    @pytest.mark.parametrize(
        ("word", "expected"),
        [(None, 1), ("commit", 1), ("rollback", 0), ("unknown", 0)],
    )
    def test_leaving_commits_unless_told_otherwise(self, word: str | None, expected: int) -> None:
        """
        The body is the local transaction; its id is the message's own.
        """

        async def story(cluster: Cluster) -> tuple[int, bool]:
            async with cluster.producer() as producer:
                async with producer.transaction(Message("orders", b"book")) as tx:
                    if word is not None:
                        getattr(tx, word)()
                await asyncio.sleep(1)
                return stored(cluster), tx.transaction_id == tx.result.msg_id

        assert (expected, True) == in_cluster(story)

    def test_an_exception_rolls_back_and_goes_on(self) -> None:
        """
        Nothing is delivered, and nobody is asked about it later.
        """

        async def story(cluster: Cluster) -> tuple[int, int]:
            asked: list[Unfinished] = []
            async with cluster.producer() as producer:
                producer.check(lambda message: asked.append(message) or "commit")
                with pytest.raises(ZeroDivisionError):
                    async with producer.transaction(Message("orders", b"book")):
                        _ = 1 / 0
                await asyncio.sleep(120)
                return stored(cluster), len(asked)

        assert (0, 0) == in_cluster(story)

    def test_a_word_given_before_an_exception_stands(self) -> None:
        """
        What the database has committed is committed, whatever fails afterwards.
        """

        async def story(cluster: Cluster) -> int:
            async with cluster.producer() as producer:

                async def work() -> None:
                    async with producer.transaction(Message("orders", b"book")) as tx:
                        tx.commit()
                        _ = 1 / 0

                with pytest.raises(ZeroDivisionError):
                    await work()
                await asyncio.sleep(1)
                return stored(cluster)

        assert 1 == in_cluster(story)

    def test_a_cancelled_block_is_asked_about(self) -> None:
        """
        Nobody knows how far it came.
        """

        async def story(cluster: Cluster) -> tuple[int, int]:
            async with cluster.producer() as producer:
                producer.check(lambda message: Decision.COMMIT)

                async def work() -> None:
                    async with producer.transaction(Message("orders", b"book")):
                        await asyncio.sleep(100)

                task = asyncio.create_task(work())
                await asyncio.sleep(1)
                task.cancel()
                await asyncio.wait([task])
                before = stored(cluster)
                await asyncio.sleep(10)
                return before, stored(cluster)

        assert (0, 1) == in_cluster(story)

    def test_a_half_message_that_is_not_safe_runs_nothing(self) -> None:
        """
        Not flushed in time: rolled back before the body, and the error says so.
        """

        async def story(cluster: Cluster) -> tuple[list[str], int]:
            ran: list[str] = []
            async with cluster.producer() as producer:
                with pytest.raises(HalfNotSafe, match="FLUSH_DISK_TIMEOUT"):
                    async with producer.transaction(Message("orders", b"book"), timeout=30):
                        ran.append("body")
                await asyncio.sleep(200)
                return ran, stored(cluster)

        found = in_cluster(
            story, flush_disk_type="SYNC_FLUSH", syncer=InlineSyncer(8), sync_flush_timeout=1000
        )
        assert ([], 0) == found

    def test_queue_and_patience_can_be_chosen(self) -> None:
        """
        `check_after` is when the broker asks first.
        """

        async def story(cluster: Cluster) -> tuple[int, float]:
            loop = asyncio.get_running_loop()
            asked: list[float] = []
            async with cluster.producer() as producer:
                producer.check(lambda message: asked.append(loop.time()) or "commit")
                queue = Queue("orders", "broker-a", 0)
                began = loop.time()
                block = producer.transaction(Message("orders", b"x"), queue=queue, check_after=30)
                async with block as tx:
                    tx.unknown()
                await asyncio.sleep(40)
                return stored(cluster), asked[0] - began

        found, waited = in_cluster(story)

        assert 1 == found
        assert 29 < waited < 32

    def test_a_delay_is_refused(self) -> None:
        """
        RocketMQ's brokers would lose such a message.
        """

        async def story(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                with pytest.raises(MessageRefused, match="takes no delay"):
                    producer.transaction(Message("orders", b"x", delay_level=3))

        in_cluster(story)


class TestFunctions:
    def test_a_function_decides(self) -> None:
        """
        Plain or asynchronous; its result is the decision.
        """

        async def story(cluster: Cluster) -> tuple[Decision | None, Decision | None, int]:
            async def no(_: Transaction) -> str:
                return "rollback"

            async with cluster.producer() as producer:
                yes = await producer.send_transaction(Message("orders", b"1"), lambda tx: "commit")
                not_this = await producer.send_transaction(Message("orders", b"2"), no)
                await asyncio.sleep(1)
                return yes.decision, not_this.decision, stored(cluster)

        assert (Decision.COMMIT, Decision.ROLLBACK, 1) == in_cluster(story)

    @pytest.mark.parametrize("value", [True, False, None, "yes", 8])
    def test_what_is_no_decision_is_refused(self, value: object) -> None:
        """
        And rolls back: a program that forgot to return must not deliver.
        """

        async def story(cluster: Cluster) -> int:
            async with cluster.producer() as producer:
                with pytest.raises(TypeError, match="commit, rollback or unknown"):
                    await producer.send_transaction(Message("orders", b"1"), lambda tx: value)
                await asyncio.sleep(100)
                return stored(cluster)

        assert 0 == in_cluster(story)

    def test_many_are_under_way_at_once(self) -> None:
        """
        Each with a future of its own; one that fails harms none of the others.
        """

        async def story(cluster: Cluster) -> tuple[int, int]:
            def local(tx: Transaction) -> str:
                if tx.message.body == b"7":
                    raise ValueError("no")
                return "rollback" if tx.message.body == b"8" else "commit"

            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"first"))
                futures = [
                    producer.submit_transaction(Message("orders", str(number)), local)
                    for number in range(100)
                ]
                done = await asyncio.gather(*futures, return_exceptions=True)
                await asyncio.sleep(1)
                return sum(isinstance(each, ValueError) for each in done), stored(cluster)

        assert (1, 1 + 98) == in_cluster(story)


class TestQuestions:
    def test_the_handler_sees_the_message_and_decides(self) -> None:
        """
        One question at a time; the answer goes to who asked.
        """

        async def story(cluster: Cluster) -> tuple[list[tuple[Any, ...]], int, int]:
            seen: list[tuple[Any, ...]] = []
            running = most = 0

            async with cluster.producer() as producer:

                @producer.check
                async def check(message: Unfinished) -> str:
                    nonlocal running, most
                    running += 1
                    most = max(most, running)
                    await asyncio.sleep(0.5)
                    running -= 1
                    seen.append((message.topic, message.body, message.keys, message.tags))
                    return "commit" if message.body == b"1" else "rollback"

                for body in (b"1", b"2", b"3"):
                    message = Message("orders", body, tags="t", keys=["k"])
                    async with producer.transaction(message) as tx:
                        tx.unknown()
                await asyncio.sleep(20)
                return sorted(seen), stored(cluster), most

        seen, count, most = in_cluster(story)

        assert [("orders", body, ("k",), "t") for body in (b"1", b"2", b"3")] == seen
        assert (1, 1) == (count, most)

    def test_a_handler_that_fails_is_asked_again(self, caplog: pytest.LogCaptureFixture) -> None:
        """
        An exception, or a result that is no decision, is said aloud and counts as unknown.
        """

        async def story(cluster: Cluster) -> tuple[int, int]:
            asked = 0

            async with cluster.producer() as producer:

                @producer.check
                def check(message: Unfinished) -> object:
                    nonlocal asked
                    asked += 1
                    if asked == 1:
                        raise ValueError("database is away")
                    return True if asked == 2 else "commit"

                async with producer.transaction(Message("orders", b"1")) as tx:
                    tx.unknown()
                await asyncio.sleep(150)
                return asked, stored(cluster)

        assert (3, 1) == in_cluster(story)
        assert "database is away" in caplog.text
        assert "not by True" in caplog.text

    def test_without_a_handler_it_says_so_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """
        And answers unknown: another producer of the group may know.
        """

        async def story(cluster: Cluster) -> int:
            async with cluster.producer() as producer:
                async with producer.transaction(Message("orders", b"1")) as tx:
                    tx.unknown()
                await asyncio.sleep(200)
                return stored(cluster)

        with caplog.at_level(logging.ERROR):
            assert 0 == in_cluster(story)
        assert 1 == caplog.text.count("has no check handler")

    def test_questions_beyond_the_limit_come_again(self) -> None:
        """
        checkRequestHoldMax waits; the rest is asked about a minute later.
        """

        async def story(cluster: Cluster) -> tuple[int, int]:
            options = ProducerOptions(check_request_hold_max=2)
            async with cluster.producer(options=options) as producer:

                @producer.check
                async def check(message: Unfinished) -> str:
                    await asyncio.sleep(2)
                    return "commit"

                for number in range(5):
                    async with producer.transaction(Message("orders", str(number))) as tx:
                        tx.unknown()
                await asyncio.sleep(30)
                first = stored(cluster)
                await asyncio.sleep(60)
                return first, stored(cluster)

        first, later = in_cluster(story)

        assert first < 5 == later

    def test_hooks_see_the_ends(self) -> None:
        """
        A signature must be on them too.
        """

        class Seen(Hook):
            def __init__(self) -> None:
                self.codes: list[int] = []

            def before_request(self, address: str, command: Command) -> None:
                self.codes.append(command.code)

            def after_response(self, address: str, command: Command, response: Command) -> None:
                return

        async def story(cluster: Cluster) -> tuple[int, int]:
            hook = Seen()
            async with cluster.producer(hooks=[hook]) as producer:
                producer.check(lambda message: "commit")
                async with producer.transaction(Message("orders", b"1")):
                    pass
                async with producer.transaction(Message("orders", b"2")) as tx:
                    tx.unknown()
                await asyncio.sleep(10)
                return hook.codes.count(37), stored(cluster)

        assert (3, 2) == in_cluster(story)


@pytest.mark.parametrize("word", ["commit", "rollback", "unknown"])
def test_words_are_decisions(word: str) -> None:
    """
    The three words and the three members, and nothing else.
    """
    assert Decision(word) is decision_of(word) is decision_of(Decision(word))
