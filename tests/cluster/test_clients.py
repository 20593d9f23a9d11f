"""Clients, rule by rule: identity, shared connections, hooks, options, and what they refuse."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from peer import Run
from puppet import puppets

from gantrymq import (
    ClientOptions,
    Closed,
    ConsumerOptions,
    HookFailed,
    LitePullConsumer,
    Message,
    NameRefused,
    NoNameServer,
    NotStarted,
    Producer,
    PullConsumer,
    Queue,
)
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.options_file import load_options
from gantrymq.protocol.command import Command
from gantrymq.testing.cluster import Cluster

X = Message("orders", b"x")


def puller(cluster: Cluster) -> PullConsumer:
    return PullConsumer(
        cluster.namesrv, group="reader", network=cluster.network, clock=cluster.clock,
        rng=cluster.rng,
    )  # fmt: skip


class Watcher:
    """A hook that signs and remembers."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.answers: list[tuple[Command, int]] = []
        self.refuses = 0
        self.breaks = False

    def before_request(self, address: str, command: Command) -> None:
        if command.code == self.refuses:
            raise PermissionError("not without a key")
        command.ext["Signature"] = "signed"
        self.requests.append(command)

    def after_response(self, address: str, command: Command, response: Command) -> None:
        self.answers.append((command, response.code))
        if self.breaks:
            raise RuntimeError("this hook is broken")


class TestIdentity:
    def test_is_address_and_instance_name(self, run: Run) -> None:
        """
        Both can be set; unset, the address is found and the name is unique in the process.
        """

        async def work(cluster: Cluster) -> None:
            mine = ClientOptions(client_ip="10.1.2.3", instance_name="shop-1")
            async with cluster.producer("a", client=mine) as named, cluster.producer("b") as plain:
                assert "10.1.2.3@shop-1" == named.instance.client_id
                address, _, name = plain.instance.client_id.partition("@")
                assert 4 == len(address.split("."))
                assert str(os.getpid()) == name.partition("#")[0]

        run(work)

    def test_is_known_to_the_broker_by_group(self, run: Run) -> None:
        """
        A broker lists the clients of a producer group.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            async with cluster.producer("shop") as producer, cluster.admin() as admin:
                await producer.send(X)
                async with asyncio.timeout(10):
                    while not (known := await online(admin)):
                        await asyncio.sleep(0.05)
                assert [producer.instance.client_id] == known

        async def online(admin: Any) -> list[str]:
            try:
                found = await admin.producers("shop", "orders")
            except Exception:
                return []
            return [row.client_id for row in found.connection_set]

        run(work)

    def test_shares_connections_and_timers(self, run: Run) -> None:
        """
        Two producers and a consumer of one client: one connection to the broker, not three.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            async with (
                cluster.producer("one") as one,
                cluster.producer("two") as two,
                cluster.consumer("g") as consumer,
            ):
                consumer.subscribe("orders")
                await one.send(X)
                await two.send(X)
                await consumer.wait_assigned()
                assert one.instance is two.instance is consumer.instance
                broker = f"127.0.0.1:{cluster.broker().config.listen_port}"
                assert 1 == Counter(one.instance.connections.addresses)[broker]

        run(work)

    @pytest.mark.parametrize("name", ["DEFAULT_PRODUCER", "DEFAULT_CONSUMER", "", "a b"])
    def test_needs_a_group_of_its_own(self, name: str) -> None:
        """
        Two strangers must not share a group because neither chose a name.
        """
        with pytest.raises(ConsumerMisused if name.startswith("D") else NameRefused):
            Consumer("localhost:9876", group=name)
        if name != "DEFAULT_CONSUMER":
            with pytest.raises(NameRefused):
                Producer("localhost:9876", group=name)


class TestHooks:
    def test_see_every_request_and_its_own_answer(self, run: Run) -> None:
        """
        Fields that a hook adds travel; after the answer it gets the request it saw before.
        """

        async def work(cluster: Cluster) -> None:
            hook = Watcher()
            async with cluster.producer(hooks=[hook]) as producer:
                await producer.send(X)
                await producer.submit(X)
                await producer.send_batch([X, X])
                await producer.send_oneway(X)
            codes = [command.code for command in hook.requests]
            assert {310: 3, 320: 1} == {code: codes.count(code) for code in (310, 320)}
            answered = [command for command, _ in hook.answers]
            assert 3 == sum(command.code in (310, 320) for command in answered)
            assert all(any(seen is command for seen in hook.requests) for command in answered)
            assert {"signed"} == {command.ext["Signature"] for command in hook.requests}

        run(work)

    def test_that_object_stop_the_request(self, run: Run) -> None:
        """
        The sender is told why; nothing reaches a broker, and the producer goes on.
        """

        async def work(cluster: Cluster) -> None:
            async with puppets(cluster, "a") as (broker,):
                hook = Watcher()
                hook.refuses = 310
                async with cluster.producer(hooks=[hook]) as producer:
                    for _ in range(3):
                        with pytest.raises(HookFailed, match="not without a key"):
                            await producer.send(X)
                    with pytest.raises(HookFailed, match="not without a key"):
                        await producer.send_oneway(X)
                    assert [] == broker.sends
                    hook.refuses = 0
                    assert "SEND_OK" == (await producer.send(X)).status

        run(work, brokers=0)

    def test_that_break_on_an_answer_break_nothing_else(self, run: Run) -> None:
        """
        The message is stored and its sender knows; the connection stays.
        """

        async def work(cluster: Cluster) -> None:
            hook = Watcher()
            async with cluster.producer(hooks=[hook]) as producer:
                await producer.send(X)
                before = dict(producer.instance.connections._open)
                hook.breaks = True
                assert "SEND_OK" == (await producer.send(X)).status
                assert "SEND_OK" == (await producer.submit(X)).status
                assert before == producer.instance.connections._open

        run(work)


class TestAClientThatCannotWork:
    def test_says_that_it_was_closed(self, run: Run) -> None:
        """
        Every verb of every kind of client, and `start` as well.
        """

        async def work(cluster: Cluster) -> None:
            producer, consumer = cluster.producer(), cluster.consumer("g")
            pulling = puller(cluster)
            lite = LitePullConsumer(
                cluster.namesrv, group="lite", network=cluster.network, clock=cluster.clock,
                rng=cluster.rng,
            )  # fmt: skip
            for client in (producer, consumer, pulling, lite):
                await client.start()
                await client.close()
            queue = Queue("orders", "broker-a", 0)
            for verb in (
                producer.start(), producer.send(X), producer.send_oneway(X), producer.flush(),
                producer.send_batch([X]), consumer.start(), consumer.run(), consumer.commit(),
                pulling.pull(queue, 0), pulling.commit(queue, 0), lite.poll(), lite.commit(),
            ):  # fmt: skip
                with pytest.raises(Closed, match=r"closed|before"):
                    await verb
            with pytest.raises(Closed):
                producer.submit(X)
            with pytest.raises(Closed):
                consumer.subscribe("orders")
            with pytest.raises(Closed):
                aiter(consumer)
            with pytest.raises(Closed):
                lite.pause([queue])

        run(work)

    def test_says_that_it_was_never_started(self, run: Run) -> None:
        """
        With the two ways to start it.
        """

        async def work(cluster: Cluster) -> None:
            for client in (cluster.producer(), cluster.consumer("g"), puller(cluster)):
                verb = client.send(X) if isinstance(client, Producer) else None
                if isinstance(client, PullConsumer):
                    verb = client.pull(Queue("orders", "broker-a", 0), 0)  # type: ignore[assignment]
                if isinstance(client, Consumer):
                    verb = client.commit()  # type: ignore[assignment]
                assert verb is not None
                with pytest.raises(NotStarted, match="async with"):
                    await verb

        run(work)

    def test_says_so_after_a_start_that_failed(self, run: Run, monkeypatch: Any) -> None:
        """
        Without any name server it cannot start, and is not half started either.
        """
        monkeypatch.delenv("NAMESRV_ADDR", raising=False)

        async def work(cluster: Cluster) -> None:
            producer = Producer(group="shop", network=cluster.network, clock=cluster.clock)
            with pytest.raises(NoNameServer):
                await producer.start()
            with pytest.raises(NotStarted):
                await producer.send(X)

        run(work)


class TestOptions:
    def test_come_from_a_file_as_well(self, run: Run, tmp_path: Path) -> None:
        """
        The same names, in tables of a TOML file.
        """
        path = tmp_path / "gantry.toml"
        path.write_text(
            '[client]\ninstance_name = "filed"\n[producer]\ndefault_topic_queue_nums = 2\n'
        )

        async def work(cluster: Cluster) -> None:
            options = load_options(path)
            async with cluster.producer(
                client=options.client, options=options.producer
            ) as producer:
                await producer.send(X)
                assert producer.instance.client_id.endswith("@filed")
                async with asyncio.timeout(10):
                    while len(await producer.queues("orders")) != 2:
                        await asyncio.sleep(0.05)

        run(work)

    def test_that_do_not_exist_are_errors(self) -> None:
        """
        A misspelt name must not be ignored.
        """
        with pytest.raises(TypeError):
            ConsumerOptions(pull_batchsize=3)  # type: ignore[call-arg]

    @pytest.mark.parametrize(
        "table, theirs, default",
        [
            ("client", "namesrvAddr", "None"),
            ("client", "clientIP", "None"),
            ("client", "instanceName", "'DEFAULT'"),
            ("client", "pollNameServerInterval", "30000"),
            ("client", "heartbeatBrokerInterval", "30000"),
            ("client", "persistConsumerOffsetInterval", "5000"),
            ("client", "clientCallbackExecutorThreads", "0"),
            ("producer", "createTopicKey", "'TBW102'"),
            ("producer", "defaultTopicQueueNums", "4"),
            ("producer", "sendMsgTimeout", "3000"),
            ("producer", "compressMsgBodyOverHowmuch", "4096"),
            ("producer", "retryTimesWhenSendFailed", "2"),
            ("producer", "retryTimesWhenSendAsyncFailed", "2"),
            ("producer", "retryAnotherBrokerWhenNotStoreOK", "False"),
            ("producer", "sendLatencyFaultEnable", "False"),
            ("producer", "maxMessageSize", "4194304"),
            ("producer", "checkThreadPoolMinSize", "1"),
            ("producer", "checkThreadPoolMaxSize", "1"),
            ("producer", "checkRequestHoldMax", "2000"),
            ("consumer", "messageModel", "'CLUSTERING'"),
            ("consumer", "consumeFromWhere", "'CONSUME_FROM_LAST_OFFSET'"),
            ("consumer", "consumeTimestamp", "None"),
            ("consumer", "allocateMessageQueueStrategy", "'AVG'"),
            ("consumer", "consumeThreadMin", "20"),
            ("consumer", "consumeThreadMax", "20"),
            ("consumer", "consumeConcurrentlyMaxSpan", "2000"),
            ("consumer", "pullThresholdForQueue", "1000"),
            ("consumer", "pullThresholdSizeForQueue", "100"),
            ("consumer", "pullInterval", "0"),
            ("consumer", "consumeMessageBatchMaxSize", "1"),
            ("consumer", "pullBatchSize", "32"),
            ("consumer", "maxReconsumeTimes", "-1"),
            ("consumer", "suspendCurrentQueueTimeMillis", "1000"),
            ("consumer", "consumeTimeout", "900000"),
            ("pull", "brokerSuspendMaxTimeMillis", "20000"),
            ("pull", "consumerTimeoutMillisWhenSuspend", "30000"),
            ("pull", "consumerPullTimeoutMillis", "10000"),
            ("pull", "messageModel", "'CLUSTERING'"),
            ("pull", "registerTopics", "()"),
            ("pull", "allocateMessageQueueStrategy", "'AVG'"),
        ],
    )
    def test_are_listed_under_rocketmqs_names_with_its_defaults(
        self, table: str, theirs: str, default: str
    ) -> None:
        """
        The reference page is printed from the code, so that what it says is what is used.
        """
        page = (Path(__file__).parents[2] / "docs" / "client-options.md").read_text()
        section = page.partition(f"## `[{table}]`")[2].partition("\n## ")[0]
        rows = [row.split("|") for row in section.splitlines() if f"| `{theirs}`" in row]
        assert [f"`{default}`"] == [row[2].strip() for row in rows]
