"""The workbench for dead letters: list, sort by cause, send again without doubling, export."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from peer import Peer, Run

from gantrymq import ConsumerOptions, DeadLetters, Delivery, Message
from gantrymq.cli.main import main
from gantrymq.client.admin.letters.dead_letters import DeadLetterFilter, Letter, NotReadable
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue, dead_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def bench(cluster: Cluster, group: str = "g") -> DeadLetters:
    return DeadLetters(cluster.namesrv, group=group, **cluster._ports)


async def kill(cluster: Cluster, *bodies: str, group: str = "g", topic: str = "orders") -> None:
    """Let messages die: `key:cause` dies of an exception that says so."""
    async with cluster.producer() as producer:
        for body in bodies:
            key = body.partition(":")[0]
            await producer.send(Message(topic, body, keys=[key], tags="t", properties={"p": key}))
    left = len(bodies)
    done = asyncio.Event()
    async with cluster.consumer(group, options=FIRST, max_retries=0) as consumer:

        @consumer.handler
        async def fail(message: Delivery) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()
            cause = message.body.decode().partition(":")[2]
            if cause == "value":
                raise ValueError(f"bad value in {message.keys[0]}")
            if cause == "reason":
                await message.dead(reason="nobody wants it")
            else:
                raise KeyError(cause)

        consumer.subscribe(topic)
        async with asyncio.timeout(30):
            await done.wait()
    async with bench(cluster, group) as letters, asyncio.timeout(30):
        while len([letter async for letter in letters.all()]) < len(bodies):
            await asyncio.sleep(0.05)


async def look_until_it_fails(letters: DeadLetters) -> None:
    while True:
        await letters.page()
        await asyncio.sleep(0.05)


def keys(letters: list[Letter]) -> list[str]:
    return [letter.message.keys[0] for letter in letters]


class TestLooking:
    def test_pages_say_whether_there_is_more(self, run: Run) -> None:
        """
        Every list is complete or leads on; no letter is shown twice.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await kill(cluster, *(f"k{n}:value" for n in range(5)))
            async with bench(cluster) as letters:
                first = await letters.page(limit=2)
                second = await letters.page(limit=2, after=first.after)
                third = await letters.page(limit=2, after=second.after)
                assert [2, 2, 1] == [len(page.letters) for page in (first, second, third)]
                assert third.after is None
                found = keys(first.letters + second.letters + third.letters)
                assert ["k0", "k1", "k2", "k3", "k4"] == sorted(found)
                with pytest.raises(ClientError, match="no place in a list of dead letters"):
                    await letters.page(after="somewhere")

        run(work)

    def test_letters_are_found_by_cause_topic_key_and_time(self, run: Run) -> None:
        """
        Each filter alone; a group without dead letters has an empty list.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, "a:value", "b:key", "c:value")
            await kill(cluster, "d:value", topic="bills")
            async with bench(cluster, "nobody") as none:
                assert ([], None) == await none.page()
            async with bench(cluster) as letters:

                async def found(**wanted: object) -> list[str]:
                    page = await letters.page(DeadLetterFilter(**wanted))  # type: ignore[arg-type]
                    return sorted(keys(page.letters))

                (a,) = (await letters.page(DeadLetterFilter(key="a"))).letters
                assert ["a", "c", "d"] == await found(fingerprint=a.failure.fingerprint)
                assert ["d"] == await found(topic="bills")
                assert ["a"] == await found(key=a.message.msg_id)
                died = a.message.store_ms
                assert "a" in await found(since_ms=died, until_ms=died)
                assert [] == await found(since_ms=died + 3_600_000)
                assert [] == await found(until_ms=died - 3_600_000)
                assert a.dead_id == (await letters.one(a.dead_id)).dead_id
                assert a.dead_id == (await letters.one(a.message.msg_id)).dead_id

        run(work)

    def test_statistics_group_by_cause(self, run: Run) -> None:
        """
        One defect is one row, however the messages differ; reasons without an exception count, too.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, "a:value", "b:reason", "c:value", "d:value")
            async with bench(cluster) as letters:
                causes = await letters.statistics()
            assert [(3, "ValueError", ""), (1, "", "nobody wants it")] == [
                (cause.count, cause.error, cause.reason) for cause in causes
            ]
            assert {"orders": 3} == causes[0].topics
            assert causes[0].text.startswith("bad value in ")

        run(work)

    def test_a_topic_made_unreadable_by_an_old_broker_is_mended(self, run: Run) -> None:
        """
        Brokers before 4.9.2 made it write-only: the error names the command that helps.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, "a:value")
            peer = await Peer.to(cluster)
            await peer.call(17, topic=dead_topic("g"), defaultTopic="TBW102", readQueueNums=1,
                            writeQueueNums=1, perm=2, topicFilterType="SINGLE_TAG",
                            topicSysFlag=0, order="false")  # fmt: skip
            async with bench(cluster) as letters, asyncio.timeout(30):
                with pytest.raises(NotReadable, match="gantry dlq mend g"):
                    await look_until_it_fails(letters)
                assert ["broker-a"] == await letters.mend()
                assert ["a"] == keys((await letters.page()).letters)
                assert [] == await letters.mend()

        run(work)


class TestResending:
    def test_reaches_only_the_group_that_failed(self, run: Run) -> None:
        """
        By default through its retry topic: id, keys and topic as before, tries from 0, nothing of
        the failure. Other groups of the topic see nothing.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, "a:value")
            async with cluster.consumer("other", options=FIRST) as other:
                other.subscribe("orders")
                seen = await anext(other)
                await seen.ack()
                async with bench(cluster) as letters:
                    (letter,) = (await letters.page()).letters
                    assert await letters.resend(letter) is not None
                async with cluster.consumer("g") as consumer, asyncio.timeout(30):
                    consumer.subscribe("orders")
                    again = await anext(consumer)
                    await again.ack()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await anext(other)
            assert letter.message.msg_id == again.msg_id == seen.msg_id
            assert ("orders", ("a",), "t", 0) == (
                again.topic, again.keys, again.tags, again.reconsume_times,
            )  # fmt: skip
            ours = {name for name in again.properties if name.startswith(("GANTRY", "DLQ"))}
            assert {"GANTRY_RESENT_FROM"} == ours
            assert letter.dead_id == again.properties["GANTRY_RESENT_FROM"]

        run(work)

    def test_can_go_to_the_topic_with_another_body(self, run: Run) -> None:
        """
        Every group reads it there, as a new message with the old id.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, "a:value")
            async with cluster.consumer("other", options=FIRST) as other:
                other.subscribe("orders")
                await (await anext(other)).ack()
                async with bench(cluster) as letters:
                    (letter,) = (await letters.page()).letters
                    await letters.resend(letter, to="topic", body=b"mended")
                async with asyncio.timeout(30):
                    again = await anext(other)
                    await again.ack()
            assert (b"mended", "orders", letter.message.msg_id) == (
                again.body, again.queue.topic, again.msg_id,
            )  # fmt: skip
            assert not {"RETRY_TOPIC", "ORIGIN_MESSAGE_ID"} & again.properties.keys()

        run(work)

    def test_in_bulk_doubles_nothing_however_often_it_is_repeated(self, run: Run) -> None:
        """
        Whoever repeats it, with a new client and no file: the broker knows what has arrived.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, *(f"k{n}:{'value' if n % 2 else 'key'}" for n in range(6)))
            async with bench(cluster) as letters:
                (letter,) = (await letters.page(DeadLetterFilter(key="k1"))).letters
                fingerprint = letter.failure.fingerprint
                await letters.resend(letter)
            outcomes = []
            for _ in range(2):
                async with bench(cluster) as letters:
                    summary = await letters.resend_all(
                        DeadLetterFilter(fingerprint=fingerprint), rate=1000
                    )
                    outcomes.append((summary.resent, summary.skipped, summary.failed))
            assert [(2, 1, {}), (0, 3, {})] == outcomes
            seen = []
            async with cluster.consumer("g") as consumer, asyncio.timeout(30):
                consumer.subscribe("orders")
                for _ in range(3):
                    message = await anext(consumer)
                    seen.append(message.keys[0])
                    await message.ack()
            assert ["k1", "k3", "k5"] == sorted(seen)

        run(work)

    def test_notes_its_progress_in_a_file(self, tmp_path: Path) -> None:
        """
        For brokers without an index: what the file names is skipped, also behind a torn line.
        """
        path = tmp_path / "progress"

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await kill(cluster, "a:value", "b:value")
                async with bench(cluster) as letters:
                    found = {k: letter for letter in (await letters.page()).letters
                             for k in letter.message.keys}  # fmt: skip
                    path.write_text(f"{found['a'].dead_id}\n7F0000")
                    summary = await letters.resend_all(progress=path, rate=1000)
                    assert (1, 1) == (summary.resent, summary.skipped)
                    lines = path.read_text().splitlines()
                    assert [found["a"].dead_id, "7F0000", found["b"].dead_id] == lines

        simulate(work)

    def test_keeps_to_its_rate(self) -> None:
        """
        Ten a second are ten a second.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await kill(cluster, *(f"k{n}:value" for n in range(20)))
                began = asyncio.get_running_loop().time()
                async with bench(cluster) as letters:
                    assert 20 == (await letters.resend_all(rate=10)).resent
                assert 2.0 <= asyncio.get_running_loop().time() - began < 2.5

        simulate(work)

    def test_stops_when_nothing_goes_through(self) -> None:
        """
        Five failures in a row end it; what was resent stays so, and the error tells.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await kill(cluster, *(f"k{n}:value" for n in range(8)), topic="bills")
                async with cluster.admin() as admin:
                    await admin.create_topic("bills", queues=4, perm=4)
                async with bench(cluster) as letters:
                    with pytest.raises(ClientError, match="5 letters in a row were not resent"):
                        await letters.resend_all(to="topic", rate=1000)

        simulate(work)

    def test_a_letter_that_dies_again_can_be_resent_again(self, run: Run) -> None:
        """
        Its second death is another letter, which knows the first.
        """

        async def work(cluster: Cluster) -> None:
            await kill(cluster, "a:value")
            async with bench(cluster) as letters:
                (first,) = (await letters.page()).letters
                await letters.resend(first)
            async with cluster.consumer("g", max_retries=0) as consumer, asyncio.timeout(30):
                consumer.subscribe("orders")
                await (await anext(consumer)).dead(reason="no")
            async with bench(cluster) as letters:
                second = (await letters.page()).letters[-1]
                assert first.dead_id == second.row()["resentFrom"]
                assert await letters.resend(first) is None
                assert await letters.resend(second) is not None

        run(work)


class TestTheCommand:
    def test_lists_counts_shows_resends_and_exports(self) -> None:
        """
        Data on stdout in the wanted form; each letter is resent once.
        """

        async def work() -> None:
            async with Cluster() as cluster:
                await kill(cluster, "a:value", "b:value", "c:key")

                async def dlq(*words: str) -> str:
                    line = ["dlq", *words, "-n", cluster.namesrv]
                    result = await asyncio.to_thread(CliRunner().invoke, main, line)
                    assert 0 == result.exit_code, result.output
                    return result.stdout

                rows = json.loads(await dlq("list", "g", "-o", "json", "--key", "c"))
                assert [("orders", ["c"], "KeyError")] == [
                    (row["topic"], row["keys"], row["error"]) for row in rows
                ]
                assert 4 == len((await dlq("list", "g")).splitlines())
                causes = json.loads(await dlq("stats", "g", "-o", "json"))
                assert [(2, "ValueError"), (1, "KeyError")] == [
                    (cause["count"], cause["error"]) for cause in causes
                ]
                dead_id = rows[0]["deadId"]
                (shown,) = json.loads(await dlq("show", "g", dead_id))
                assert ("c:key", "c") == (shown["body"], shown["properties"]["p"])
                outcomes = [
                    json.loads(await dlq("resend", "g", dead_id, "-o", "json"))[0]["outcome"]
                    for _ in range(2)
                ]
                assert ["resent", "skipped"] == outcomes
                bulk = await dlq("resend", "g", "--all", "--rate", "1000", "-o", "json")
                assert [{"resent": 2, "skipped": 1, "failed": 0}] == json.loads(bulk)
                exported = [json.loads(line) for line in (await dlq("export", "g")).splitlines()]
                assert ["a:value", "b:value", "c:key"] == sorted(row["body"] for row in exported)
                assert "was readable everywhere" in await dlq("mend", "g")

        asyncio.run(work())

    @pytest.mark.parametrize(
        "words", [["resend", "g"], ["resend", "g", "x", "--all"], ["list", "g", "--since", "then"]]
    )
    def test_says_what_it_does_not_understand(self, words: list[str]) -> None:
        """
        Exit code 2 before anything is asked.
        """
        assert 2 == CliRunner().invoke(main, ["dlq", *words]).exit_code


def test_a_queue_of_dead_letters_is_one_a_broker(run: Run) -> None:
    """
    %DLQ%group: one queue, readable and writable, made only when something dies.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("orders")
        async with cluster.admin() as admin:
            assert dead_topic("g") not in await admin.topics()
            await kill(cluster, "a:value")
            assert [Queue(dead_topic("g"), "broker-a", 0)] == list(
                await admin.topic_stats(dead_topic("g"))
            )
            config = await admin.topic_configs((await admin.masters())["broker-a"])
            assert 6 == config[dead_topic("g")].perm

    run(work)
