"""Group settings: kept by the broker, and each one with its effect."""

import asyncio
import json

import pytest
from click.testing import CliRunner
from peer import Peer, Run, bodies

from gantrymq import Delivery, Message
from gantrymq.cli.main import main
from gantrymq.client.admin.groups.group_settings import change_settings, settings
from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.model import GroupConfig
from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.testing.cluster import Cluster

NOTIFY = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED


async def put(cluster: Cluster, **wanted: object) -> None:
    async with cluster.admin() as admin:
        await change_settings(admin, "g", wanted)


async def both_wait(cluster: Cluster, peer: Peer) -> None:
    """A pull and a pop of group g are held."""
    async with cluster.admin() as admin:
        (address,) = (await admin.masters()).values()
        while "1" != (await admin.broker_runtime(address))["pullsHeld"]:
            await asyncio.sleep(0.01)
    asked = {"consumerGroup": "g", "topic": "orders", "queueId": -1}
    while "1" != (await peer.call(RequestCode.POLLING_INFO, **asked)).ext["pollingNum"]:
        await asyncio.sleep(0.01)


class TestEffects:
    def test_a_group_that_may_not_consume_is_refused_at_once(self, run: Run) -> None:
        """
        consumeEnable: held pulls and pops are let go, the next ones refused, until it may again.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            peer = await Peer.to(cluster)
            popping = {
                "consumerGroup": "g", "topic": "orders", "queueId": -1, "maxMsgNums": 8,
                "invisibleTime": 10_000, "pollTime": 15_000, "initMode": 0, "expType": "TAG",
                "exp": "*", "bornTime": cluster.clock.now_ms(),
            }  # fmt: skip
            held = [
                asyncio.ensure_future(peer.pull("orders", 0, hold=15_000)),
                asyncio.ensure_future(peer.call(RequestCode.POP_MESSAGE, **popping)),
            ]
            await both_wait(cluster, peer)
            started = asyncio.get_running_loop().time()
            await put(cluster, consume_enable=False)
            codes = [(await answer).code for answer in held]
            assert [ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT] == codes
            assert asyncio.get_running_loop().time() - started < 10

            await peer.send("orders", b"one")
            refused = await peer.pull("orders", 0)
            assert ResponseCode.NO_PERMISSION == refused.code
            assert "subscription group no permission, g" == refused.remark
            assert (
                ResponseCode.NO_PERMISSION
                == (await peer.call(RequestCode.POP_MESSAGE, **popping)).code
            )
            await put(cluster, consume_enable=True)
            assert [b"one"] == bodies(await peer.pull("orders", 0))

        run(work)

    def test_a_consumer_goes_on_when_its_group_may_again(self, run: Run) -> None:
        """
        Members keep running meanwhile and miss nothing.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            await put(cluster, consume_enable=False)
            async with cluster.producer() as producer, cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                await consumer.wait_assigned(1)
                await producer.send(Message("orders", b"one"))
                await put(cluster, consume_enable=True)
                message = await anext(consumer)
                assert b"one" == message.body
                await message.ack()

        run(work)

    @pytest.mark.parametrize("allowed", [True, False])
    def test_broadcasting_needs_leave(self, run: Run, allowed: bool) -> None:
        """
        consumeBroadcastEnable: without it a broadcasting member gets nothing.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            await put(cluster, consume_broadcast_enable=allowed)
            peer = await Peer.to(cluster)
            await peer.send("orders", b"one")
            await peer.heartbeat("c@1", "g", "orders", model="BROADCASTING")
            answer = await peer.call(
                11, consumerGroup="g", topic="orders", queueId=0, queueOffset=0, maxMsgNums=32,
                sysFlag=0, commitOffset=0, suspendTimeoutMillis=0, subVersion=0,
            )  # fmt: skip
            if allowed:
                assert [b"one"] == bodies(answer)
            else:
                assert ResponseCode.NO_PERMISSION == answer.code
                assert "can not consume by broadcast way" in (answer.remark or "")

        run(work)

    def test_retries_spread_over_as_many_queues_as_wanted(self, run: Run) -> None:
        """
        retryQueueNums: of a new retry topic and of one that is there; it never shrinks.
        """

        async def work(cluster: Cluster) -> None:
            topics = cluster.broker().registry.topics
            peer = await Peer.to(cluster)
            for wanted, there in ((2, 2), (5, 5), (1, 5)):
                await put(cluster, retry_queue_nums=wanted)
                await peer.heartbeat("c@1", "g", "orders")
                retry = topics.table["%RETRY%g"]
                assert (there, there) == (retry.read_queue_nums, retry.write_queue_nums)
            async with cluster.admin() as admin:
                while 5 > len(await admin.topic_stats("%RETRY%g")):
                    await asyncio.sleep(0.01)

        run(work)

    def test_without_retry_queues_nothing_comes_back(self, run: Run) -> None:
        """
        retryQueueNums 0: a message given back is gone, as RocketMQ has it.
        """

        async def work(cluster: Cluster) -> None:
            await put(cluster, retry_queue_nums=0)
            peer = await Peer.to(cluster)
            sent = await peer.send("orders", b"one")
            at = int(sent.ext["msgId"][-16:], 16)
            answer = await peer.call(36, offset=at, group="g", delayLevel=1, originTopic="orders")
            assert 0 == answer.code
            assert not [name for name in cluster.broker().registry.topics.table if "%" in name]

        run(work)

    @pytest.mark.parametrize("limit", [0, 1])
    def test_a_message_is_dead_after_as_many_tries_as_wanted(self, run: Run, limit: int) -> None:
        """
        retryMaxTimes, for members that set no limit of their own.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            await put(cluster, retry_max_times=limit)
            tries: list[int] = []
            async with cluster.producer() as producer, cluster.consumer("g") as consumer:

                @consumer.handler
                async def fail(message: Delivery) -> None:
                    tries.append(message.reconsume_times)
                    await message.retry(1)

                consumer.subscribe("orders")
                await consumer.wait_assigned(1)
                await producer.send(Message("orders", b"one"))
                while not cluster.broker().store.queues.max_offset("%DLQ%g", 0):
                    await asyncio.sleep(0.05)
            assert list(range(limit + 1)) == tries

        run(work)

    @pytest.mark.parametrize("wanted", [True, False])
    def test_members_hear_of_each_other_if_wanted(self, run: Run, wanted: bool) -> None:
        """
        notifyConsumerIdsChangedEnable: without it they notice at their next round.
        """

        async def work(cluster: Cluster) -> None:
            await put(cluster, notify_consumer_ids_changed_enable=wanted)
            first, second = await Peer.to(cluster), await Peer.to(cluster)
            await first.heartbeat("c@1", "g", "orders")
            await second.heartbeat("c@2", "g", "orders")
            await first.heartbeat("c@1", "g", "orders")  # its answer is behind any word of others
            heard = [command for command in first.pushed if NOTIFY == command.code]
            assert wanted == bool(heard)

        run(work)

    def test_where_a_new_group_begins_does_not_depend_on_a_setting(self, run: Run) -> None:
        """
        consumeFromMinEnable is kept but nobody looks at it, as in RocketMQ: its tool clears it with
        every change, and groups that then skipped messages would surprise.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            peer = await Peer.to(cluster)
            await peer.send("orders", b"one")
            for wanted in (True, False):
                await put(cluster, consume_from_min_enable=wanted)
                answer = await peer.call(14, consumerGroup="g", topic="orders", queueId=0)
                assert "0" == answer.ext["offset"]
            async with cluster.admin() as admin:
                assert not (await admin.groups())["g"].consume_from_min_enable

        run(work)


class TestTable:
    def test_settings_survive_a_restart(self, run: Run) -> None:
        """
        All of them, also those that only matter with slaves.
        """

        async def work(cluster: Cluster) -> None:
            wanted = GroupConfig(
                group_name="g", consume_enable=False, consume_from_min_enable=False,
                consume_broadcast_enable=False, retry_queue_nums=3, retry_max_times=7,
                broker_id=1, which_broker_when_consume_slowly=2,
                notify_consumer_ids_changed_enable=False,
            )  # fmt: skip
            async with cluster.admin() as admin:
                await admin.update_group(wanted)
                await cluster.stop_broker()
                await cluster.start_broker()
                assert wanted == (await admin.groups())["g"]

        run(work)

    def test_a_change_leaves_the_rest_as_each_broker_has_it(self, run: Run) -> None:
        """
        Brokers keep tables of their own; what is not named is not touched.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.admin() as admin:
                await change_settings(admin, "g", {"retry_max_times": 3}, broker="broker-a")
                assert ["broker-a"] == list((await settings(admin))["g"])
                await change_settings(admin, "g", {"consume_broadcast_enable": False})
                found = (await settings(admin))["g"]
                assert {"broker-a": (3, False), "broker-b": (16, False)} == {
                    name: (config.retry_max_times, config.consume_broadcast_enable)
                    for name, config in found.items()
                }

        run(work, brokers=2)

    def test_nonsense_is_refused(self, run: Run) -> None:
        """
        A setting that does not exist, a name that no group may have, too many queues.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.admin() as admin:
                with pytest.raises(ClientError, match="no setting colour"):
                    await change_settings(admin, "g", {"colour": 1})
                with pytest.raises(BrokerRefused, match="raise maxQueuesPerTopic"):
                    await change_settings(admin, "g", {"retry_queue_nums": 1 << 20})
                assert "g" not in await settings(admin)

        run(work)


class TestCommand:
    def test_gantry_group_shows_and_sets(self) -> None:
        """
        Only what is named changes; what loses messages is said.
        """

        async def work() -> None:
            async with Cluster() as cluster:

                async def gantry(*arguments: str, code: int = 0) -> tuple[str, str]:
                    result = await asyncio.to_thread(
                        CliRunner().invoke, main, ["group", *arguments, "-n", cluster.namesrv]
                    )
                    assert code == result.exit_code, result.output
                    return result.stdout, result.stderr

                _, said = await gantry("show", "g", code=1)
                assert "there is no group 'g'" in said
                out, said = await gantry("set", "g", "--retries", "5", "-o", "json")
                assert ("g", "broker-a", 5, 1) == tuple(
                    json.loads(out)[0][name]
                    for name in ("group", "broker", "retryMaxTimes", "retryQueueNums")
                )
                assert "" == said
                _, said = await gantry("set", "g", "--no-consume", "--retry-queues", "0")
                assert ["no retry queues", "members keep running"] == [
                    line[: line.index(":") if ":" in line else 20] for line in said.splitlines()
                ]
                out, _ = await gantry("show", "g", "-o", "jsonl")
                row = json.loads(out)
                assert (5, False, 0) == (
                    row["retryMaxTimes"], row["consumeEnable"], row["retryQueueNums"]
                )  # fmt: skip
                out, _ = await gantry("show")
                assert "TOOLS_CONSUMER" in out
                assert "groupSysFlag" not in out
                _, said = await gantry("set", "g", code=2)
                assert "say what to change" in said

        asyncio.run(work())
