"""`gantry doctor` on clusters that really have what it finds."""

import asyncio
import json

import pytest
from click.testing import CliRunner
from peer import Peer, Run
from test_subscriptions import beat

from gantrymq import ConsumerOptions, Message
from gantrymq.cli.main import main
from gantrymq.client.admin.doctor.checks import examine
from gantrymq.client.admin.doctor.collect import take_snapshot
from gantrymq.client.admin.doctor.findings import DoctorFinding
from gantrymq.model import Queue
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.threaded import GantryCluster

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


async def look(cluster: Cluster) -> list[DoctorFinding]:
    """All findings; how full this machine's disk is belongs to other tests."""
    async with cluster.admin() as admin:
        return [each for each in examine(await take_snapshot(admin)) if each.check != "disk"]


def kinds(found: list[DoctorFinding]) -> list[tuple[str, str]]:
    return [(each.check, each.severity.value) for each in found]


def test_a_cluster_that_is_well_has_no_findings(run: Run) -> None:
    """
    A topic, a group that reads it, a slave and two name servers: nothing to say.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("orders")
            await consumer.wait_assigned(4)
            while found := await look(cluster):
                assert {"slave"} == {each.check for each in found}  # it has not caught up yet
                await asyncio.sleep(0.05)

    run(work, slaves=1, nameservers=2)


async def register(peer: Peer, name: str, port: int) -> None:
    """Register a broker by hand; it is known as long as the connection lasts."""
    fields = {"brokerName": name, "brokerAddr": f"127.0.0.1:{port}", "brokerId": 0}
    answer = await peer.call(
        103, clusterName="DefaultCluster", haServerAddr="127.0.0.1:1", **fields
    )
    assert 0 == answer.code


def test_an_address_that_does_not_answer_is_a_finding(run: Run) -> None:
    """
    It is named with the setting, and what other brokers say is looked at all the same.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.create_topic("orders", read_queues=2, write_queues=4)
        peer = await Peer.to_namesrv(cluster)
        await register(peer, "broker-x", 1)
        found = await look(cluster)
        assert [("address", "error"), ("master", "error"), ("queue-counts", "error")] == kinds(
            found
        )
        assert "registered 127.0.0.1:1, which does not answer from here" in found[0].text
        assert ("brokerIP1", "broker-x:0") == (found[0].setting, found[0].where)
        peer.close()

    run(work)


def test_name_servers_that_differ_are_told(run: Run) -> None:
    """
    A name server that lost a broker is named, with what to set.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to_namesrv(cluster, 1)
        await register(peer, "broker-x", cluster.broker().config.listen_port)
        found = await look(cluster)
        first = cluster.namesrv.split(";")[0]
        assert [first] == [each.where for each in found if each.check == "name-servers"]
        peer.close()

    run(work, nameservers=2)


def test_queues_and_permissions_are_judged(run: Run) -> None:
    """
    Write queues without readers, and dead letters that nobody may read.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.create_topic("orders", read_queues=2, write_queues=4)
            await admin.create_topic("returns", read_queues=4, write_queues=2)
            await admin.create_topic("%DLQ%g", queues=1, perm=2)
        assert [
            ("queue-counts", "error"),
            ("queue-counts", "warning"),
            ("dead-letter-permission", "warning"),
        ] == kinds(await look(cluster))

    run(work)


def test_members_that_differ_or_are_too_many_are_told(run: Run) -> None:
    """
    Subscriptions that differ lose messages; a member without a queue is idle.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        one, two = await Peer.to(cluster), await Peer.to(cluster)
        await beat(one, "one", "a", 0)
        await beat(two, "two", "b", 0)
        found = await look(cluster)
        assert [("subscriptions", "error"), ("more-members-than-queues", "warning")] == kinds(found)
        assert "one wants 'a' of orders, two wants 'b'" in found[0].text
        one.close()
        two.close()

    run(work)


def test_a_backlog_is_judged_by_where_it_is_and_who_reads_it(run: Run) -> None:
    """
    Most of it in one queue, and no member that runs.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=2)
        async with cluster.producer() as producer:
            for _ in range(120):
                await producer.send(Message("orders", b"x"), queue=Queue("orders", "broker-a", 0))
        peer = await Peer.to(cluster)
        for queue_id in range(2):
            await peer.pull("orders", 0, queue=queue_id)
            await peer.call(15, consumerGroup="g", topic="orders", queueId=queue_id, commitOffset=0)
        found = await look(cluster)
        assert [("stuck-queues", "warning"), ("unbalanced-queues", "warning")] == kinds(found)
        assert "no member runs, and there are 120 unread messages" in found[0].text
        peer.close()

    run(work)


def test_a_member_that_does_not_get_on_is_named() -> None:
    """
    Messages in hand and nothing finished for a minute: the queue, the member and how to look.
    """

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("orders", queues=1)
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"x"))
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.subscribe("orders")
                await anext(consumer)  # and it is never finished
                await asyncio.sleep(120)
                (found,) = await look(cluster)
                assert ("stuck-queues", "error") == (found.check, found.severity.value)
                assert "orders@broker-a:0: stuck: nothing finished for" in found.text
                assert consumer.instance.client_id in found.mend

    simulate(story)


def test_a_backlog_older_than_retention_is_told() -> None:
    """
    With fileReservedTime of two hours, a group that stopped two hours ago loses messages.
    """

    async def story() -> None:
        async with Cluster(memory=True, file_reserved_time=2) as cluster:
            await cluster.create_topic("orders", queues=1)
            async with cluster.producer() as producer:
                for _ in range(3):
                    await producer.send(Message("orders", b"x"))
            peer = await Peer.to(cluster)
            await peer.pull("orders", 0)
            await peer.call(15, consumerGroup="g", topic="orders", queueId=0, commitOffset=1)
            await asyncio.sleep(7_000)
            found = await look(cluster)
            assert ("retention", "warning") in kinds(found)
            peer.close()

    simulate(story)


def test_a_sync_master_without_its_slave_is_an_error() -> None:
    """
    The slave is gone: sends are answered, and stored once only.
    """

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, broker_role="SYNC_MASTER") as cluster:
            while [each for each in await look(cluster) if each.check == "slave"]:
                await asyncio.sleep(0.1)
            await cluster.stop_broker("broker-a-s1")
            await asyncio.sleep(20)
            assert ("slave", "error") in kinds(await look(cluster))

    simulate(story)


def test_a_raft_group_without_its_majority_is_an_error() -> None:
    """
    Two of three members are gone, and nobody leads.
    """

    async def story() -> None:
        async with Cluster(memory=True, members=3) as cluster:
            await cluster.wait_for_leader()
            while found := await look(cluster):
                assert {"raft", "master"} >= {each.check for each in found}
                await asyncio.sleep(0.5)
            for name in ("n0", "n1"):
                await cluster.kill_broker(name)
            await asyncio.sleep(20)
            found = await look(cluster)
            assert ("raft", "error") in kinds(found)
            assert "1 of 3 members is up" in next(e.text for e in found if e.check == "raft")

    simulate(story)


def test_a_clock_that_is_ahead_is_told(gantry: GantryCluster) -> None:
    """
    The broker's hour is compared with the hour of the machine that the command runs on.
    """
    gantry.clock.advance(600)
    found = CliRunner().invoke(main, ["doctor", "-n", gantry.namesrv, "-o", "json"])
    clocks = [row for row in json.loads(found.stdout) if row["check"] == "clock"]
    assert 1 == found.exit_code
    assert "its clock is 0:10:00 ahead of the clock of this machine" in clocks[0]["finding"]


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_the_command_prints_findings_and_what_mends_them(gantry: GantryCluster, form: str) -> None:
    """
    Exit code 1 with an error among them, 0 without; the count stands on standard error.
    """
    well = CliRunner().invoke(main, ["doctor", "-n", gantry.namesrv])
    assert (0, True) == (well.exit_code, "error" not in well.stderr)

    async def spoil() -> None:
        async with gantry.cluster.admin() as admin:
            await admin.create_topic("orders", read_queues=2, write_queues=4)

    gantry.call(spoil())
    found = CliRunner().invoke(main, ["doctor", "-n", gantry.namesrv, "-o", form])
    assert 1 == found.exit_code
    assert "1 error" in found.stderr
    assert "gantry topic update orders --broker broker-a --read-queues 4" in found.stdout
    if form == "json":
        assert "error" == json.loads(found.stdout)[0]["severity"]
    if form == "jsonl":
        assert "queue-counts" == json.loads(found.stdout.splitlines()[0])["check"]


def test_the_machine_check_needs_no_cluster() -> None:
    """
    It ends with 0 or 1 by what it finds on this machine, and says how many.
    """
    found = CliRunner().invoke(main, ["doctor", "--system", "--store", "/"])
    assert found.exit_code in (0, 1)
    assert found.stderr
