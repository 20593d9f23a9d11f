"""Operators delete at once what nobody can read any more; other things they ask for are refused."""

import asyncio

import pytest
from peer import Peer, Run, bodies

from gantrymq.model import TopicConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import EpochEntryCache
from gantrymq.protocol.refusals import REFUSED
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

QUEUES, UNUSED, FILES, EPOCHS, HA_INFO = 306, 316, 329, 1007, 906
SMALL_FILES = {
    "mapped_file_size_commit_log": 16 * 1024,
    "max_message_size": 4_096,
    "delete_when": "04",
}
HOUR = 3600.0


def test_expired_log_files_are_deleted_at_once() -> None:
    """
    Whatever the hour, but only what is over fileReservedTime; queues follow.
    """

    async def main() -> None:
        async with Cluster(memory=True, file_reserved_time=1, **SMALL_FILES) as cluster:
            peer, store = await Peer.to(cluster), cluster.broker().store
            await cluster.create_topic("orders", queues=1)
            for number in range(20):
                await peer.send("orders", str(number).encode().ljust(3_000))
            await asyncio.sleep(60)
            young = await peer.call(FILES)
            assert (0, 0) == (young.code, store.log_min)

            await asyncio.sleep(HOUR)
            peer = await Peer.to(cluster)  # the last one was idle
            await peer.send("orders", b"last")
            await asyncio.sleep(60)
            while "deleted" in ((await peer.call(FILES)).remark or ""):
                pass

            first = store.queues.min_offset("orders", 0)
            assert store.log_min > 0
            assert 0 < first < 20
            assert 0 == (await peer.call(QUEUES)).code
            left = bodies(await peer.pull("orders", first))
            assert (first, b"last") == (int(left[0]), left[-1])

    simulate(main)


def test_a_queue_without_messages_keeps_its_end() -> None:
    """
    Cleaning takes its files and not its place: the next message is one that groups still want.
    """

    async def main() -> None:
        async with Cluster(memory=True, file_reserved_time=1, **SMALL_FILES) as cluster:
            peer = await Peer.to(cluster)
            for topic in ("orders", "other"):
                await cluster.create_topic(topic, queues=1)
            await peer.send("orders", b"first")
            for _ in range(20):
                await peer.send("other", b"x" * 3_000)
            await asyncio.sleep(2 * HOUR)
            peer = await Peer.to(cluster)
            await peer.send("other", b"young")
            await asyncio.sleep(60)
            while "deleted" in ((await peer.call(FILES)).remark or ""):
                pass
            await peer.call(QUEUES)
            assert 1 == cluster.broker().store.queues.min_offset("orders", 0)
            await peer.send("orders", b"second")
            assert [b"second"] == bodies(await peer.pull("orders", 1))

    simulate(main)


def test_queues_of_topics_without_settings_are_deleted(run: Run) -> None:
    """
    Those of other topics and of the system stay.
    """

    async def work(cluster: Cluster) -> None:
        peer, broker = await Peer.to(cluster), cluster.broker()
        for topic in ("orders", "lost"):
            await cluster.create_topic(topic, queues=1)
            await peer.send(topic, b"a message")
        await peer.send("orders", b"later", props="DELAY\x0118\x02")
        assert None is (await peer.call(UNUSED)).remark
        broker.registry.topics.apply("lost", None)  # as if topics.json came from elsewhere

        answer = await peer.call(UNUSED)

        assert "1 topic cleaned: lost" == answer.remark
        assert {"orders", "SCHEDULE_TOPIC_XXXX"} <= set(broker.store.queues.topics())
        assert "lost" not in broker.store.queues.topics()
        broker.registry.topics.apply("lost", TopicConfig(topic_name="lost"))
        assert 19 == (await peer.pull("lost", 0)).code

    run(work)


def test_a_slave_keeps_queues_whose_topic_it_does_not_know_yet() -> None:
    """
    Messages of a new topic reach it before its settings.
    """

    async def main() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders", queues=1)
            await (await Peer.to(cluster)).send("orders", b"a book")
            await asyncio.sleep(5)
            slave = cluster.broker("broker-a-s1")
            slave.registry.topics.apply("orders", None)
            answer = await (await Peer.at(cluster, "broker-a-s1")).call(UNUSED)
            assert (0, True) == (answer.code, "clean there" in (answer.remark or ""))
            assert "orders" in slave.store.queues.topics()

    simulate(main)


@pytest.mark.parametrize("code", sorted(REFUSED), ids=lambda code: code.name)
def test_what_is_not_built_is_refused_with_a_reason(code: int) -> None:
    """
    Every refused request is answered with the same code and with a sentence that says why.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            answer = await (await Peer.to(cluster)).call(code)
            assert 3 == answer.code
            assert REFUSED[code] == answer.remark  # type: ignore[index]

    simulate(main)


def test_a_raft_group_tells_its_epochs() -> None:
    """
    One row a term, up to where the next one begins; brokers that are in none refuse.
    """

    async def main() -> None:
        async with Cluster(memory=True, members=3) as cluster:
            first = await cluster.wait_for_leader()
            await cluster.stop_broker(first)
            leader = await cluster.wait_for_leader(other_than=first)
            answer = await (await Peer.at(cluster, leader)).call(EPOCHS)
            found = fastjson.load_as(answer.body, EpochEntryCache)
            starts = [(row.epoch, row.start_offset) for row in found.epoch_list]
            assert starts == sorted(starts)
            assert len(starts) >= 2
            ends = [row.end_offset for row in found.epoch_list]
            assert [start for _, start in starts[1:]] == ends[:-1]
            assert (2**63 - 1, True) == (ends[-1], found.max_offset > starts[-1][1])
        async with Cluster(memory=True) as alone:
            refused = await (await Peer.to(alone)).call(EPOCHS)
            assert (1, True) == (refused.code, "controllerMode" in (refused.remark or ""))

    simulate(main)


def test_a_master_tells_where_its_ha_port_is() -> None:
    """
    A slave tells nothing, and neither lets itself be sent to another master.
    """

    async def main() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            broker = cluster.broker()
            found = (await (await Peer.to(cluster)).call(HA_INFO)).ext
            assert broker.address == found["masterAddress"]
            assert str(broker.config.ha_listen_port) == found["masterHaAddress"].rpartition(":")[2]
            slave = await Peer.at(cluster, "broker-a-s1")
            assert {} == (await slave.call(HA_INFO)).ext
            assert 1 == (await slave.call(HA_INFO, masterHaAddress="10.0.0.1:1")).code

    simulate(main)
