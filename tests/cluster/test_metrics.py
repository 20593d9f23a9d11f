"""Metrics of real brokers and name servers over HTTP: what happens is what is told."""

import asyncio
import time
from pathlib import Path

from metricskit import Page, get, parse, scrape, scrape_until
from peer import Peer

from gantrymq import Message
from gantrymq.metrics import table
from gantrymq.metrics.metric import COMMON_LABELS, Metric
from gantrymq.model import GroupConfig, TopicConfig
from gantrymq.nameserver.app import run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.testing.cluster import HOST, Cluster

PROM = {"metrics_exporter_type": "PROM", "metrics_prom_exporter_port": 0}
KIB = 1024
FRAME_BYTES_MAX = 200_000
OF_NAME_SERVERS = {table.BROKERS, table.ROUTED_TOPICS}
OF_CONSOLES = {metric for metric in table.METRICS if metric.switch == table.CONSOLE}
OF_COPIES = {table.COPY_LAG, table.COPY_SILENCE, table.IN_SYNC, table.LEADS, table.TERM}
EVERYWHERE = {m.name for m in table.METRICS if m not in OF_NAME_SERVERS | OF_COPIES | OF_CONSOLES}
LOOP_SECONDS_MAX = 0.05
TOPICS, GROUPS = 5_000, 2_000


def lines_of(page: Page, metric: Metric) -> list[dict[str, str]]:
    """The labels of all lines of a metric."""
    name = f"{metric.name}_count" if metric.kind == "histogram" else metric.name
    return [labels for labels, _ in page.samples.get(name, [])]


async def _consume(cluster: Cluster) -> None:
    """Two acknowledged, one dead, the others in hand."""
    async with cluster.consumer("billing", start="first") as consumer:
        consumer.subscribe("orders")
        for number in range(3):
            message = await anext(consumer)
            await (message.dead(reason="no") if number == 2 else message.ack())


async def _pop(cluster: Cluster) -> None:
    """One popped and acknowledged, one lent until it comes again."""
    async with cluster.simple_consumer("workers", invisible=1) as consumer:
        consumer.subscribe("jobs")
        await (await consumer.receive(max=1, wait=5))[0].ack()
        first = (await consumer.receive(max=1, wait=5))[0]
        again = (await consumer.receive(max=1, wait=10))[0]
        assert first.body == again.body


async def _transact(cluster: Cluster) -> None:
    async with cluster.producer("shop") as producer:
        async with producer.transaction(Message("orders", b"a book")):
            pass
        async with producer.transaction(Message("orders", b"a moon")) as tx:
            tx.rollback()
        async with producer.transaction(Message("orders", b"a lamp"), check_after=600) as tx:
            tx.unknown()


async def _everything(cluster: Cluster) -> None:
    """Each thing that a metric of a single broker is about."""
    for topic in ("orders", "jobs", "later"):
        await cluster.create_topic(topic, 1)
    async with cluster.producer("shop") as producer:
        for size in (10, 10, 3 * KIB, 2 * KIB):
            await producer.send(Message("orders", b"x" * size))
        await producer.send_batch([Message("jobs", b"job"), Message("jobs", b"job")])
        await producer.send(Message("later", b"soon", delay=0.3))
        await producer.send(Message("later", b"not now", delay=3600))
        await _consume(cluster)
        await _pop(cluster)
        await _transact(cluster)
    peer, other = await Peer.to(cluster), await Peer.to(cluster)
    await peer.heartbeat("a", "torn", "orders")
    await other.heartbeat("b", "torn", "jobs")  # a subscription that conflicts
    other.close()
    assert 0 != (await peer.send("orders", b"x" * FRAME_BYTES_MAX)).code
    peer.close()


def test_every_metric_has_lines_when_its_thing_happened() -> None:
    """
    With the declared kind and labels and nothing that is not declared: those of name servers and of
    copies are looked at elsewhere.
    """

    async def main() -> None:
        options = {"metrics_lag_per_queue": True, "max_frame_bytes": FRAME_BYTES_MAX, **PROM}
        async with Cluster(**options) as cluster:
            async with cluster.consumer("watching") as watching:
                watching.subscribe("orders")
                await _everything(cluster)
                async with cluster.producer("shop"):
                    # Timers, and decisions about half messages, are written some time later.
                    page = await scrape_until(
                        cluster.broker().metrics_address,
                        lambda page: EVERYWHERE <= page.kinds.keys(),
                    )
            _check_declared(page)
            _check_values(page)

    asyncio.run(main())


def _check_declared(page: Page) -> None:
    declared = {m.name: m for m in table.METRICS if m.name in EVERYWHERE}
    assert page.kinds == {name: metric.kind for name, metric in declared.items()} | {
        table.IN_SYNC.name: "gauge"
    }
    for name, metric in declared.items():
        for labels in lines_of(page, metric):
            assert {*COMMON_LABELS, *metric.labels} == labels.keys(), name
            assert ["DefaultCluster", "broker", "broker-a"] == [
                labels[each] for each in COMMON_LABELS
            ]


def _check_values(page: Page) -> None:
    own = {"topic": "orders", "message_type": "normal"}
    assert 4 == page.value("rocketmq_messages_in_total", **own)
    assert 1 == page.value("rocketmq_messages_in_total", topic="orders", message_type="transaction")
    assert 1 == page.value("rocketmq_messages_in_total", topic="later", message_type="delay")
    assert 5 * KIB < page.value("rocketmq_throughput_in_total", **own)
    sizes = [page.value("rocketmq_message_size_bucket", le=le, topic="orders")
             for le in ("1024.0", "4096.0")]  # fmt: skip
    assert sizes[0] + 2 == sizes[1] == page.value("rocketmq_message_size_count", **own)
    assert 1 == page.value(
        "rocketmq_send_to_dlq_messages_total", topic="orders", consumer_group="billing"
    )
    lag = {"topic": "orders", "consumer_group": "billing", "is_retry": "false"}
    assert 2 == page.value("rocketmq_consumer_lag_messages", **lag)
    assert 2 == page.value("gantrymq_queue_lag_messages", queue_id="0", **lag)
    assert 0 < page.value("rocketmq_consumer_lag_latency_milliseconds", **lag) < 60_000
    assert 1 == page.value("rocketmq_half_messages", topic="orders")
    assert 1 == page.value("rocketmq_commit_messages_total", topic="orders")
    assert 1 == page.value("rocketmq_rollback_messages_total", topic="orders")
    assert 1 == page.value("rocketmq_timing_messages")
    popped = {"topic": "jobs", "consumer_group": "workers"}
    assert 2 == page.value(
        "rocketmq_pop_revive_in_message_total", revive_message_type="CK", **popped
    )
    assert 1 == page.value("rocketmq_pop_revive_retry_messages_total", **popped)
    assert 1 == page.value("gantrymq_refused_total", limit="maxFrameBytes")
    assert 6 == page.value("rocketmq_broker_permission")


def test_a_name_server_tells_what_is_registered(tmp_path: Path) -> None:
    """Its own metrics, with its address as node_id."""

    async def main() -> None:
        config = NameServerConfig(
            listen_port=0, bind_address=HOST, kv_config_path=f"{tmp_path}/kv.json",
            config_store_path=f"{tmp_path}/namesrv.properties",
            metrics_exporter_type="PROM", metrics_prom_exporter_port=0,
        )  # fmt: skip
        async with run_nameserver(config) as server:
            namesrv = f"{HOST}:{server.port}"
            async with Cluster(nameservers=0, namesrv_addr=namesrv) as cluster:
                await cluster.broker().announced.wait()
                page = await scrape(server.metrics_address)
        assert 1 == page.value("gantrymq_registered_brokers", broker_cluster="DefaultCluster")
        assert 1 <= page.value("gantrymq_routed_topics")
        info = page.samples["gantrymq_info"][0][0]
        assert ("nameserver", namesrv, "NAMESERVER") == (
            info["node_type"], info["node_id"], info["role"],
        )  # fmt: skip

    asyncio.run(main())


def test_a_master_tells_how_far_its_slaves_are_behind() -> None:
    """By their addresses; the slave's own page says that it is one."""

    async def main() -> None:
        async with Cluster(slaves=1, **PROM) as cluster:
            await cluster.create_topic("orders")
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"x"))
            page = await scrape_until(
                cluster.broker().metrics_address,
                lambda page: (
                    page.has("gantrymq_replication_lag_bytes", kind="slave")
                    and page.value("gantrymq_replication_lag_bytes") == 0
                ),
            )
            assert 1 == page.value("gantrymq_in_sync_copies")
            assert 30 > page.value("gantrymq_replication_silence_seconds")
            slave = await scrape(cluster.broker("broker-a-s1").metrics_address)
            assert slave.has("gantrymq_info", role="SLAVE", node_id="broker-a")

    asyncio.run(main())


def test_members_of_a_raft_group_tell_who_leads() -> None:
    """One leads, all have its term, and the leader knows how far the followers are."""

    async def main() -> None:
        async with Cluster(members=3, **PROM) as cluster:
            leader = await cluster.wait_for_leader()
            await scrape_until(
                cluster.broker(leader).metrics_address,
                lambda page: (
                    page.value("gantrymq_raft_leads") == 1
                    and page.has("gantrymq_replication_lag_bytes")
                ),
            )
            pages = {
                name: await scrape(cluster.broker(name).metrics_address) for name in cluster.running
            }
            assert {name: int(name == leader) for name in pages} == {
                name: page.value("gantrymq_raft_leads") for name, page in pages.items()
            }
            assert 1 == len({page.value("gantrymq_raft_term") for page in pages.values()})
            followers = pages[leader].samples["gantrymq_replication_lag_bytes"]
            assert {"follower"} == {labels["kind"] for labels, _ in followers}
            assert 2 == len(followers)

    asyncio.run(main())


RULES = """\
globalWhiteRemoteAddresses: []
accounts:
  - {accessKey: prometheus, secretKey: prometheus-secret, defaultTopicPerm: DENY}
  - {accessKey: operator, secretKey: operator-secret, admin: true}
"""


def test_with_access_control_a_scraper_needs_a_key(tmp_path: Path) -> None:
    """Any account's, also one that may do nothing else; nobody else learns a name."""
    (tmp_path / "plain_acl.yml").write_text(RULES)

    async def main() -> None:
        own = '{"accessKey":"operator","secretKey":"operator-secret"}'
        async with Cluster(
            acl_enable=True, acl_file=str(tmp_path / "plain_acl.yml"),
            inner_client_authentication_credentials=own, **PROM,
        ) as cluster:  # fmt: skip
            address = cluster.broker().metrics_address
            assert address is not None
            for pair in ("", "prometheus:wrong", "stranger:prometheus-secret", "prometheus:"):
                status, text = await asyncio.to_thread(get, address, pair)
                assert (401, False) == (status, "rocketmq" in text), pair
            assert (await scrape(address, "prometheus:prometheus-secret")).has("gantrymq_info")

    asyncio.run(main())


def test_a_scrape_of_a_large_broker_leaves_the_loop_to_clients() -> None:
    """
    With 5,000 topics and 2,000 groups that are behind, no turn of the event loop takes 50 ms: of
    its processor time, so that a busy machine does not count.
    """

    async def main() -> None:
        async with Cluster(**PROM) as cluster:
            broker = cluster.broker()
            await _fill(cluster)
            assert broker.metrics_address is not None
            longest = 0.0
            reading = asyncio.create_task(asyncio.to_thread(get, broker.metrics_address))
            while not reading.done():
                began = time.thread_time()
                await asyncio.sleep(0)
                longest = max(longest, time.thread_time() - began)
            page = parse((await reading)[1])
            assert TOPICS < page.value("rocketmq_topic_number")
            behind = page.samples["rocketmq_consumer_lag_messages"]
            assert GROUPS == sum(lag == 1 for _, lag in behind)
            assert longest < LOOP_SECONDS_MAX
            assert page.has("gantrymq_scrape_seconds", part="longest_turn")

    asyncio.run(main())


async def _fill(cluster: Cluster) -> None:
    """Topics, groups, and a message that each group has not read."""
    broker = cluster.broker()
    peer = await Peer.to(cluster)
    async with cluster.admin() as admin:
        address = broker.address
        for at in range(0, TOPICS, 500):
            configs = [
                TopicConfig(topic_name=f"t{n}", read_queue_nums=1, write_queue_nums=1)
                for n in range(at, at + 500)
            ]
            await admin.put_topics(address, configs)
        await admin.put_groups(address, [GroupConfig(group_name=f"g{n}") for n in range(GROUPS)])
    for at in range(0, TOPICS, 200):
        sends = (peer.send(f"t{n}", b"x") for n in range(at, at + 200))
        assert {0} == {answer.code for answer in await asyncio.gather(*sends)}
    for at in range(0, GROUPS, 200):
        commits = (
            peer.call(15, consumerGroup=f"g{n}", topic=f"t{n}", queueId=0, commitOffset=0)
            for n in range(at, at + 200)
        )
        assert {0} == {answer.code for answer in await asyncio.gather(*commits)}
    peer.close()
