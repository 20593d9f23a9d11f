"""Order: who holds a queue, what a failure does to it, and what strict order refuses."""

import asyncio
from itertools import pairwise

import pytest
from flaky import FlakyLine
from peer import Peer, Run

from gantrymq import ConsumerOptions, Delivery, GantryError, Message
from gantrymq.client.admin.letters.dead_letters import DeadLetters
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.sending.send_policy import sharded
from gantrymq.model import Queue
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.headers.base import Nothing
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
Q0 = Queue("orders", "broker-a", 0)


async def fill(cluster: Cluster, *bodies: str, queue: Queue = Q0) -> None:
    async with cluster.producer() as producer:
        for body in bodies:
            await producer.send(Message("orders", body), queue=queue)


async def until(done: "asyncio.Event | list[str]", count: int = 0) -> None:
    async with asyncio.timeout(30):
        if isinstance(done, asyncio.Event):
            await done.wait()
            return
        while len(done) < count:
            await asyncio.sleep(0.01)


def member(cluster: Cluster, seen: list[str], name: str) -> Consumer:
    consumer = cluster.consumer("g", ordered=True, options=FIRST)

    @consumer.handler
    async def work(message: Delivery) -> None:
        seen.append(f"{name}{message.body.decode()}")

    return consumer


class TestTakingOver:
    def test_from_a_member_that_closes_takes_a_moment(self, run: Run) -> None:
        """
        Ordered consumers do not wait 20 s after a change of owner: the released queue's next
        message is consumed within about a second.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            seen: list[str] = []
            one, two = member(cluster, seen, "one "), member(cluster, seen, "two ")
            for consumer in (one, two):
                await consumer.start()
                consumer.subscribe("orders")
            await fill(cluster, "a")
            await until(seen, 1)
            owner, heir = (one, two) if seen == ["one a"] else (two, one)
            began = asyncio.get_running_loop().time()
            await owner.close()
            await fill(cluster, "b")
            await until(seen, 2)
            assert asyncio.get_running_loop().time() - began < 1.5
            assert sorted(["one a", "two b"] if owner is one else ["one b", "two a"]) == sorted(
                seen
            )
            await heir.close()

        run(work)

    def test_from_a_member_that_crashes_takes_ten_seconds_not_sixty(self) -> None:
        """
        Its connection is lost without a word; the lock stays for 10 s, for a member that only lost
        its line comes back within them.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                dead, heir = await Peer.to(cluster), await Peer.to(cluster)
                lock = {"consumerGroup": "g", "mqSet": [{"topic": "orders", "queueId": 0,
                        "brokerName": "broker-a"}], "stopsWhenLost": True}  # fmt: skip

                async def holds(peer: Peer, client: str) -> bool:
                    answer = await peer.call(41, fastjson.dumps({**lock, "clientId": client}))
                    return bool(fastjson.loads(answer.body)["lockOKMQSet"])

                await dead.heartbeat("dead", "g", "orders")
                await heir.heartbeat("heir", "g", "orders")
                assert await holds(dead, "dead")
                heir.pushed.clear()
                dead.close()
                await asyncio.sleep(0.1)
                assert [40] == [command.code for command in heir.pushed]
                assert not await holds(heir, "heir")
                await asyncio.sleep(9)
                assert not await holds(heir, "heir")
                await asyncio.sleep(1.5)
                assert await holds(heir, "heir")

        simulate(work)

    def test_from_a_client_that_promises_nothing_the_whole_lease_counts(self) -> None:
        """
        RocketMQ's own clients work on for up to 30 s without a connection: they keep their 60 s.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                java, heir = await Peer.to(cluster), await Peer.to(cluster)
                lock = {"consumerGroup": "g", "mqSet": [{"topic": "orders", "queueId": 0,
                        "brokerName": "broker-a"}]}  # fmt: skip

                async def holds(peer: Peer, client: str) -> bool:
                    answer = await peer.call(41, fastjson.dumps({**lock, "clientId": client}))
                    return bool(fastjson.loads(answer.body)["lockOKMQSet"])

                await java.heartbeat("java", "g", "orders")
                assert await holds(java, "java")
                java.close()
                await asyncio.sleep(59)
                assert not await holds(heir, "heir")
                await asyncio.sleep(2)
                assert await holds(heir, "heir")

        simulate(work)

    def test_good_bye_without_unlock_releases_as_well(self, run: Run) -> None:
        """
        UNREGISTER_CLIENT ends the locks of that member, and of nobody else.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 2)
            one, two = await Peer.to(cluster), await Peer.to(cluster)

            async def lock(peer: Peer, client: str, *queues: int) -> list[int]:
                mq_set = [{"topic": "orders", "queueId": n, "brokerName": "broker-a"}
                          for n in queues]  # fmt: skip
                body = {"clientId": client, "consumerGroup": "g", "mqSet": mq_set}
                answer = await peer.call(41, fastjson.dumps(body))
                return [row["queueId"] for row in fastjson.loads(answer.body)["lockOKMQSet"]]

            for peer, client, queue in ((one, "one", 0), (two, "two", 1)):
                await peer.heartbeat(client, "g", "orders")
                assert [queue] == await lock(peer, client, queue)
            assert [1] == await lock(two, "two", 0, 1)
            await one.call(35, clientID="one", consumerGroup="g")
            assert [0, 1] == await lock(two, "two", 0, 1)

        run(work)

    def test_no_message_overtakes_while_lines_break(self) -> None:
        """
        The lines of two members break again and again, for a moment or for long: a message may come
        twice, but none begins while another of its queue runs elsewhere, nor after a later one for
        the first time.
        """

        async def work() -> None:
            async with Cluster(memory=True, seed=7) as cluster:
                await cluster.create_topic("orders", 2)
                running: dict[int, str] = {}
                overlaps: list[tuple[int, str, str]] = []
                seen: dict[int, list[int]] = {0: [], 1: []}
                lines = [FlakyLine(cluster.network) for _ in range(2)]

                def start(name: str, line: FlakyLine) -> Consumer:
                    ports = {**cluster._ports, "network": line}
                    consumer = Consumer(
                        cluster.namesrv, group="g", ordered=True, options=FIRST, **ports
                    )

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        queue = message.queue.queue_id
                        if queue in running:
                            overlaps.append((queue, name, running[queue]))
                        running[queue] = name
                        await asyncio.sleep(cluster.rng.uniform(0.1, 4))
                        running.pop(queue, None)
                        seen[queue].append(int(message.body))

                    return consumer

                async with start("one", lines[0]) as one, start("two", lines[1]) as two:
                    one.subscribe("orders")
                    two.subscribe("orders")
                    await asyncio.gather(
                        *(fill(cluster, *map(str, range(60)), queue=Queue("orders", "broker-a", n))
                          for n in range(2))
                    )  # fmt: skip
                    for _ in range(12):
                        await asyncio.sleep(cluster.rng.uniform(1, 9))
                        line = cluster.rng.choice(lines)
                        line.cut()
                        await asyncio.sleep(cluster.rng.choice((0.1, 5, 30)))
                        line.mend()
                    async with asyncio.timeout(600):
                        while any(len(set(done)) < 60 for done in seen.values()):
                            await asyncio.sleep(1)
                assert [] == overlaps
                for done in seen.values():
                    assert list(range(60)) == list(dict.fromkeys(done))

        simulate(work)


class TestAPoisonMessage:
    def test_stops_its_queue_for_seventeen_tries_and_then_dies(self) -> None:
        """
        Sixteen retries in place, a second apart, the other queues go on; then it is a dead letter
        with its cause, and its queue goes on in order.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 2)
                loop = asyncio.get_running_loop()
                tries: list[float] = []
                done: list[str] = []
                async with cluster.consumer("g", ordered=True, options=FIRST) as consumer:

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        if message.body == b"poison":
                            tries.append(loop.time())
                            raise ValueError("cannot be eaten")
                        done.append(message.body.decode())

                    consumer.subscribe("orders")
                    await consumer.wait_assigned(2)
                    await fill(cluster, "poison", "b", "c")
                    await fill(cluster, "x", "y", queue=Queue("orders", "broker-a", 1))
                    await asyncio.sleep(5)
                    assert ["x", "y"] == done
                    await asyncio.sleep(15)
                assert ["x", "y", "b", "c"] == done
                assert 17 == len(tries)
                assert {1} == {round(b - a) for a, b in pairwise(tries)}
                bench = DeadLetters(cluster.namesrv, group="g", **cluster._ports)
                async with bench as letters:
                    (letter,) = (await letters.page()).letters
                assert ("ValueError", "cannot be eaten", "failed 17 times in place") == (
                    letter.failure.error, letter.failure.text, letter.failure.reason,
                )  # fmt: skip

        simulate(work)

    def test_is_skipped_when_the_handler_says_so(self, run: Run) -> None:
        """
        `dead()` in an ordered handler ends it at once; the next message follows in order.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            await fill(cluster, "a", "poison", "b")
            done: list[str] = []
            async with cluster.consumer("g", ordered=True, options=FIRST) as consumer:

                @consumer.handler
                async def handle(message: Delivery) -> None:
                    if message.body == b"poison":
                        await message.dead(reason="not ours")
                    else:
                        done.append(message.body.decode())

                consumer.subscribe("orders")
                await until(done, 2)
            assert ["a", "b"] == done

        run(work)

    def test_blocks_for_ever_without_a_limit(self) -> None:
        """
        `max_retries=None`: nothing may be skipped, so nothing goes on.
        """

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", 1)
                await fill(cluster, "poison", "b")
                seen: list[bytes] = []
                consumer = cluster.consumer("g", ordered=True, max_retries=None, options=FIRST)
                async with consumer:

                    @consumer.handler
                    async def handle(message: Delivery) -> None:
                        seen.append(message.body)
                        raise ValueError

                    consumer.subscribe("orders")
                    await asyncio.sleep(3600)
                assert {b"poison"} == set(seen)
                assert 3500 < len(seen)

        simulate(work)


class TestStrictOrder:
    def test_a_key_never_wanders_to_another_queue(self, run: Run) -> None:
        """
        An order topic keeps its queue list while a broker is away: sends to its queues fail, the
        other keys go on, and when it is back everything is as before.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.admin() as admin:
                for address in admin.instance.namesrv_addresses:
                    settings = b"orderMessageEnable=true"
                    await admin.instance.call(
                        address, calls.UPDATE_NAMESRV_CONFIG, Nothing(), settings
                    )
                await admin.create_topic("strict", queues=2, order=True)
                await admin.create_topic("normal", queues=2)
                route = await admin.topic_route("strict")
                assert "broker-a:2;broker-b:2" == route.order_topic_conf
                queues = admin.instance.routes.publish_queues(route, "strict")
            keys = [f"key-{n}" for n in range(20)]
            homes = {key: sharded(queues, key) for key in keys}
            async with cluster.producer() as producer:
                for key in keys:
                    result = await producer.send(Message("strict", key, sharding_key=key))
                    assert homes[key] == result.queue
                await cluster.stop_broker("broker-b")
                for topic in ("strict", "normal"):
                    await producer.instance.routes.refresh(topic)
                for key in keys:
                    normal = await producer.send(Message("normal", key, sharding_key=key))
                    assert "broker-a" == normal.queue.broker_name
                    if homes[key].broker_name == "broker-b":
                        with pytest.raises(GantryError, match="broker"):
                            await producer.send(Message("strict", key, sharding_key=key))
                    else:
                        result = await producer.send(Message("strict", key, sharding_key=key))
                        assert homes[key] == result.queue
                await cluster.start_broker("broker-b")
                await producer.instance.routes.refresh("strict")
                for key in keys:
                    result = await producer.send(Message("strict", key, sharding_key=key))
                    assert homes[key] == result.queue

        run(work, brokers=2)

    def test_the_list_goes_with_the_topic(self, run: Run) -> None:
        """
        One broker more joins the list; a deleted topic leaves none behind.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.admin() as admin:
                (namesrv,) = admin.instance.namesrv_addresses
                await admin.instance.call(
                    namesrv, calls.UPDATE_NAMESRV_CONFIG, Nothing(), b"orderMessageEnable=true"
                )
                await admin.create_topic("strict", queues=1, order=True, broker="broker-a")
                await admin.create_topic("strict", queues=3, order=True, broker="broker-b")
                route = await admin.topic_route("strict")
                assert "broker-a:1;broker-b:3" == route.order_topic_conf
                await admin.delete_topic("strict")
                await admin.create_topic("strict", queues=1)
                assert (await admin.topic_route("strict")).order_topic_conf is None

        run(work, brokers=2)
