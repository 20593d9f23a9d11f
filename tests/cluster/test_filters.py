"""SQL filters on the broker: what is let through, how long a pull looks, and what is refused."""

import asyncio
from typing import Any

import pytest
from peer import Peer, Run, bodies

from gantrymq import Consumer, LitePullConsumer, Message, PullConsumer
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.filter import BadSql
from gantrymq.model import Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.subscription import subscription
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

GROUP = "filtering"


async def pull_sql(
    peer: Peer, sql: str, offset: int = 0, *, hold: int = 0, count: int = 32, flags: int = 4,
    topic: str = "orders", kind: str = "SQL92", version: int = 0,
) -> Command:  # fmt: skip
    return await peer.call(
        11, consumerGroup=GROUP, topic=topic, queueId=0, queueOffset=offset, maxMsgNums=count,
        sysFlag=flags | (2 if hold else 0), commitOffset=0, suspendTimeoutMillis=hold,
        subscription=sql, subVersion=version, expressionType=kind,
    )  # fmt: skip


async def announce(peer: Peer, sql: str, *, topic: str = "orders", **changes: Any) -> Command:
    wanted = subscription(topic, sql, "SQL92", 7)
    for name, value in changes.items():
        setattr(wanted, name, value)
    consumer = {"groupName": GROUP, "subscriptionDataSet": [wanted]}
    beat = {"clientID": "c", "consumerDataSet": [consumer], "producerDataSet": []}
    return await peer.call(34, fastjson.dumps(beat))


async def send(peer: Peer, *prices: int) -> None:
    for price in prices:
        await peer.send("orders", b"%d" % price, props=f"price\x01{price}\x02region\x01eu\x02")


async def use_bad_sql(kind: str, namesrv: str, ports: dict[str, Any]) -> None:
    if kind == "push":
        Consumer(namesrv, group=GROUP).subscribe("orders", sql="price >")
    elif kind == "lite":
        LitePullConsumer(namesrv, group=GROUP).subscribe("orders", sql="price >")
    else:
        async with PullConsumer(namesrv, group=GROUP, **ports) as consumer:
            await consumer.pull(Queue("orders", "broker-a", 0), 0, sql="price >")


class TestPulls:
    def test_gets_what_matches_and_goes_on_behind_what_does_not(self, run: Run) -> None:
        """
        The next offset lies behind everything that was looked at.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1, 20, 3, 40, 5)
            answer = await pull_sql(peer, "price > 10 AND region = 'eu'")

            assert (0, [b"20", b"40"], "5") == (
                answer.code,
                bodies(answer),
                answer.ext["nextBeginOffset"],
            )

        run(work)

    def test_takes_no_more_than_was_asked_for(self, run: Run) -> None:
        """
        A pull that is full ends behind its last message, not behind the last one it read.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 20, 1, 30, 2, 40)
            first = await pull_sql(peer, "price > 10", count=2)
            second = await pull_sql(peer, "price > 10", int(first.ext["nextBeginOffset"]))

            assert [([b"20", b"30"], "3"), ([b"40"], "5")] == [
                (bodies(answer), answer.ext["nextBeginOffset"]) for answer in (first, second)
            ]

        run(work)

    def test_uses_what_the_heartbeat_said(self, run: Run) -> None:
        """
        As Java's push consumers do it: the pull itself brings no expression.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1, 20)
            await announce(peer, "price > 10")
            answer = await pull_sql(peer, "", flags=0, version=7)

            assert (0, [b"20"]) == (answer.code, bodies(answer))

        run(work)

    def test_looks_at_a_bounded_number_of_messages(self, run: Run) -> None:
        """
        800 entries later it says "nothing here, go on there": nobody holds the broker for long.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await asyncio.gather(*(send(peer, 1) for _ in range(1_000)))
            answer = await pull_sql(peer, "price > 10")
            heavy = await pull_sql(peer, " OR ".join(["price > 10"] * 300))

            assert [(20, "800"), (20, "17")] == [
                (found.code, found.ext["nextBeginOffset"]) for found in (answer, heavy)
            ]

        run(work)

    def test_looks_at_a_bounded_number_of_bytes(self, run: Run) -> None:
        """
        Large messages end a look sooner, at the one that crosses 1 MiB.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            for _ in range(6):
                await peer.send("orders", bytes(300_000), props="price\x011\x02")
            answer = await pull_sql(peer, "price > 10")

            assert (20, "4") == (answer.code, answer.ext["nextBeginOffset"])

        run(work)


class TestHeldPulls:
    def test_sleeps_through_messages_that_do_not_match(self, run: Run) -> None:
        """
        It goes on waiting from the offset behind them.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1)
            held = asyncio.ensure_future(pull_sql(peer, "price > 10", 1, hold=15_000))
            await asyncio.sleep(0.05)
            await send(peer, 2, 3)
            await asyncio.sleep(0.05)
            assert not held.done()
            await send(peer, 40)

            answer = await held
            assert ([b"40"], "4") == (bodies(answer), answer.ext["nextBeginOffset"])

        run(work)

    def test_ends_behind_what_it_slept_through(self, run: Run) -> None:
        """
        When its time is up the client need not be sent over the same messages again.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1)
            held = asyncio.ensure_future(pull_sql(peer, "price > 10", 1, hold=600))
            await asyncio.sleep(0.05)
            await send(peer, 2, 3)

            answer = await held
            assert (19, "3") == (answer.code, answer.ext["nextBeginOffset"])

        run(work)

    def test_a_burst_of_others_does_not_hold_the_broker(self) -> None:
        """
        More new messages than one look covers: the pull is sent back to ask again.
        """

        async def main() -> None:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                await send(peer, 1)
                heavy = " OR ".join(["price > 10"] * 300)
                held = asyncio.ensure_future(pull_sql(peer, heavy, 1, hold=15_000))
                await asyncio.sleep(0.05)
                await asyncio.gather(*(send(peer, 1) for _ in range(100)))
                answer = await held

                assert 20 == answer.code
                assert 1 < int(answer.ext["nextBeginOffset"]) < 101

        simulate(main)


class TestColdData:
    @pytest.mark.parametrize("cold", ["consumequeue", "commitlog", "broker-a"])
    def test_is_read_by_a_worker(self, cold: str) -> None:
        """
        What is no longer in memory is read elsewhere, and gives the same.
        """

        async def main() -> None:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                peer = await Peer.to(cluster)
                await send(peer, 1, 20, 3)
                await asyncio.sleep(2)
                disk.is_cold = lambda path, at: cold in path
                answer = await pull_sql(peer, "price > 10")

                assert (0, [b"20"], "3") == (
                    answer.code,
                    bodies(answer),
                    answer.ext["nextBeginOffset"],
                )

        simulate(main)

    def test_a_pull_whose_time_ends_meanwhile_is_answered_once(self) -> None:
        """
        The worker's late result is dropped: the client has its answer already.
        """

        async def main() -> None:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                peer = await Peer.to(cluster)
                await send(peer, 1)
                held = asyncio.ensure_future(pull_sql(peer, "price > 10", 1, hold=1_000))
                await asyncio.sleep(0.999)
                disk.is_cold = lambda path, at: True
                await send(peer, 2)
                answer = await held
                await asyncio.sleep(5)

                assert (19, "2") == (answer.code, answer.ext["nextBeginOffset"])
                assert [] == peer.pushed

        simulate(main)


class TestRefusals:
    @pytest.mark.parametrize("sql", ["price >", "price > 1 oops", ""])
    def test_a_condition_that_cannot_be_read_lets_nothing_pass(self, run: Run, sql: str) -> None:
        """
        RocketMQ delivers everything to such a pull.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1)
            answer = await pull_sql(peer, sql)

            assert (ResponseCode.SUBSCRIPTION_PARSE_FAILED, b"") == (answer.code, answer.body)
            assert "^" in str(answer.remark)

        run(work)

    def test_a_bad_condition_in_a_heartbeat_is_told_when_pulling(self, run: Run) -> None:
        """
        With RocketMQ's code for a filter it does not have, and the reason.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1)
            assert (await announce(peer, "price >")).code == 0
            answer = await pull_sql(peer, "", flags=0)

            assert ResponseCode.FILTER_DATA_NOT_EXIST == answer.code
            assert "character 8" in str(answer.remark)

        run(work)

    def test_filters_by_java_classes_are_refused_with_a_hint(self, run: Run) -> None:
        """
        RocketMQ dropped them too, but lets everything pass instead.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1)
            by_flag = await pull_sql(peer, "org.example.Filter", flags=4 | 8, kind="TAG")
            await announce(peer, "org.example.Filter", class_filter_mode=True)
            by_heartbeat = await pull_sql(peer, "", flags=0)

            assert [1, 1] == [answer.code for answer in (by_flag, by_heartbeat)]
            assert "SQL92" in str(by_flag.remark)

        run(work)

    def test_a_broker_may_have_them_switched_off(self, run: Run) -> None:
        """
        enablePropertyFilter=false, as it is RocketMQ's default.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await send(peer, 1)
            answer = await pull_sql(peer, "price > 0")

            assert 1 == answer.code
            assert "does not support consumer to filter message by SQL92" in str(answer.remark)

        run(work, enable_property_filter=False)


class TestRetries:
    @pytest.mark.parametrize("supported, expected", [(False, [b"1", b"20"]), (True, [b"20"])])
    def test_are_filtered_by_their_origin_only_if_asked_to(
        self, run: Run, supported: bool, expected: list[bytes]
    ) -> None:
        """
        filterSupportRetry: a retry topic that is subscribed with SQL is asked what the group says
        about the topic the message came from; otherwise the given condition counts.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await announce(peer, "price > 10")
            retry = f"%RETRY%{GROUP}"
            for price in (1, 20):
                props = f"price\x01{price}\x02RETRY_TOPIC\x01orders\x02"
                await peer.send(retry, b"%d" % price, props=props)
            answer = await pull_sql(peer, "price > 0", topic=retry)

            assert expected == bodies(answer)

        run(work, filter_support_retry=supported)


class TestClients:
    def test_a_consumer_receives_what_matches(self, run: Run) -> None:
        """
        From subscribing to the handler; what does not match never leaves the broker.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=2)
            async with cluster.producer() as producer:
                for price in range(8):
                    message = Message("orders", f"{price}", properties={"price": f"{price}"})
                    await producer.send(message)
            found = []
            async with cluster.consumer(GROUP) as consumer:
                consumer.subscribe("orders", sql="price BETWEEN 2 AND 3 OR price LIKE '7%'")
                async for message in consumer:
                    found.append(int(message.body))
                    await message.ack()
                    if len(found) == 3:
                        break

            assert [2, 3, 7] == sorted(found)

        run(work)

    @pytest.mark.parametrize("kind", ["push", "lite", "pull"])
    def test_a_bad_condition_never_leaves_the_client(self, run: Run, kind: str) -> None:
        """
        Every consumer raises with the place, before a broker hears of it.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            ports = {"network": cluster.network, "clock": cluster.clock}
            with pytest.raises(BadSql) as caught:
                await use_bad_sql(kind, cluster.namesrv, ports)

            assert 7 == caught.value.at

        run(work)

    def test_a_pull_consumer_receives_what_matches(self, run: Run) -> None:
        """
        With the condition in the pull itself.
        """

        async def work(cluster: Cluster) -> None:
            await send(await Peer.to(cluster), 1, 20)
            consumer = PullConsumer(
                cluster.namesrv, group=GROUP, network=cluster.network, clock=cluster.clock
            )
            async with consumer:
                found = await consumer.pull(
                    Queue("orders", "broker-a", 0), 0, sql="price LIKE '2_'"
                )

            assert [b"20"] == [message.body for message in found.messages]

        run(work)

    def test_a_broker_without_filters_is_told_of_at_once(self, run: Run) -> None:
        """
        Instead of a consumer that waits for messages that never come.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            async with cluster.consumer(GROUP) as consumer:
                consumer.subscribe("orders", sql="price > 1")
                with pytest.raises(BrokerRefused, match="enablePropertyFilter is off"):
                    async for _ in consumer:
                        pass

        run(work, enable_property_filter=False)
