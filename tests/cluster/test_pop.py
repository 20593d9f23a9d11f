"""Popping by hand, in memory and over TCP: lending, settling, waiting, retrying, order."""

import asyncio
from typing import Any

import pytest
from peer import Peer, Run
from popper import Lent, Popper

from gantrymq.broker.pop import revive_log
from gantrymq.model import GroupConfig
from gantrymq.protocol import batch, fastjson
from gantrymq.store.append import Append
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

RETRY = "%RETRY%g_orders"


def in_memory(work: Any, **settings: Any) -> Any:
    async def main() -> Any:
        async with Cluster(memory=True, **settings) as cluster:
            return await work(cluster)

    return simulate(main)


async def popper(cluster: Cluster, queues: int = 2, sent: int = 0, group: str = "g") -> Popper:
    """A member of a group on a topic that holds messages 0, 1, 2 ..."""
    peer = await Peer.to(cluster)
    await cluster.create_topic("orders", queues=queues)
    for number in range(sent):
        await peer.send("orders", b"%d" % number, number % queues)
    return Popper(peer, "orders", group)


def bodies(lent: list[Lent]) -> list[bytes]:
    return sorted(one.body for one in lent)


def test_a_pop_takes_from_all_queues_and_the_next_one_gets_nothing(run: Run) -> None:
    """
    What is lent is invisible for everybody; the group's progress stands behind it.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=4, sent=8)
        other = Popper(await Peer.to(cluster))

        found, answer = await member.pop(), await other.ask()

        assert [b"%d" % number for number in range(8)] == bodies(found)
        assert 210 == answer.code
        offsets = cluster.broker().registry.offsets
        assert [2, 2, 2, 2] == [offsets.get("g", "orders", queue) for queue in range(4)]

    run(work)


def test_what_is_acknowledged_never_comes_back(run: Run) -> None:
    """
    One by one, again, and in a batch: the rest is delivered again when its time is over.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, sent=6)
        found = await member.pop(invisible=1_000)

        assert 0 == (await member.ack(found[0])).code
        assert 0 == (await member.ack(found[0])).code
        assert 0 == (await member.ack_many(found[1:5])).code
        again = await member.pop(wait=4_000)

        assert [found[5].body] == bodies(again)
        assert 1 == again[0].message.reconsume_times
        assert "orders" == again[0].message.topic
        assert 0 == (await member.ack(again[0])).code
        assert [] == await member.pop(wait=1_500)

    run(work)


def test_many_acknowledgements_of_one_turn_become_few_records(run: Run) -> None:
    """
    32 single acks sent together are settled by one or a few records of the revive log.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=32)
        found = await member.pop()
        before = log_records(cluster)

        answers = await asyncio.gather(*(member.ack(one) for one in found))

        assert {0} == {answer.code for answer in answers}
        assert 1 <= log_records(cluster) - before <= 8

    run(work)


def log_records(cluster: Cluster) -> int:
    store = cluster.broker().store
    name = "rmq_sys_REVIVE_LOG_DefaultCluster"
    return sum(store.queues.max_offset(name, queue) for queue in range(8))


def test_a_waiting_pop_is_woken_by_a_message(run: Run) -> None:
    """
    It is counted while it waits, and answered the moment something arrives in any queue.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=3)
        sender = await Peer.to(cluster)
        waiting = asyncio.create_task(member.pop(wait=20_000))
        while not await Popper(sender).polling():
            await asyncio.sleep(0.01)

        await sender.send("orders", b"late", 2)

        assert [b"late"] == bodies(await waiting)
        assert 0 == await Popper(sender).polling()

    run(work)


def test_each_message_wakes_one_of_those_who_wait(run: Run) -> None:
    """
    First come, first served; whoever finds nothing waits on.
    """

    async def work(cluster: Cluster) -> None:
        await popper(cluster, queues=2)
        members = [Popper(await Peer.to(cluster)) for _ in range(3)]
        waiting = [asyncio.create_task(member.pop(wait=20_000)) for member in members]
        sender = await Peer.to(cluster)
        while await Popper(sender).polling() < 3:
            await asyncio.sleep(0.01)

        for number in range(3):
            await sender.send("orders", b"%d" % number, number % 2)
        found = await asyncio.gather(*waiting)

        assert [1, 1, 1] == [len(lent) for lent in found]
        assert [b"0", b"1", b"2"] == sorted(lent[0].body for lent in found)

    run(work)


def test_a_wait_ends_in_time_with_nothing(run: Run) -> None:
    """
    POLLING_TIMEOUT after the poll time; at once without one, or for a request that is too old.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster)
        loop = asyncio.get_running_loop()
        began = loop.time()

        waited = await member.ask(wait=300)
        took = loop.time() - began
        at_once = await member.ask()
        too_old = await member.ask(bornTime=1)

        assert [210, 210, 210] == [waited.code, at_once.code, too_old.code]
        assert took >= 0.29

    run(work)


def test_a_lost_connection_waits_no_more(run: Run) -> None:
    """
    Its message goes to somebody who is still there.
    """

    async def work(cluster: Cluster) -> None:
        gone = await popper(cluster)
        other = Popper(await Peer.to(cluster))
        waiting = asyncio.create_task(gone.ask(wait=20_000))
        while not await other.polling():
            await asyncio.sleep(0.01)
        gone.peer.close()
        await asyncio.gather(waiting, return_exceptions=True)
        while await other.polling():
            await asyncio.sleep(0.01)

        await other.peer.send("orders", b"here")

        assert [b"here"] == bodies(await other.pop(wait=2_000))

    run(work)


def test_no_more_wait_than_the_limits_allow(run: Run) -> None:
    """
    POLLING_FULL for one too many of a topic, group and queue, and for one too many of all.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster)
        waiting = [asyncio.create_task(member.ask(wait=1_500)) for _ in range(2)]
        while await member.polling() < 2:
            await asyncio.sleep(0.01)

        full = await member.ask(wait=1_500)
        others = Popper(member.peer, group="h")
        more = [asyncio.create_task(others.ask(wait=1_000)) for _ in range(2)]
        while await others.polling() < 2:
            await asyncio.sleep(0.01)
        full_of_all = await others.ask(wait=1_000)

        assert 209 == full.code
        assert 209 == full_of_all.code
        assert [210] * 4 == [answer.code for answer in await asyncio.gather(*waiting, *more)]

    run(work, pop_polling_size=1, max_pop_polling_size=4)


def test_a_longer_time_is_granted_from_now_on(run: Run) -> None:
    """
    The new handle settles the message; with the old one nothing can be done any more.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=2)
        first, second = await member.pop(invisible=600)
        old = Lent(first.message, first.handle)

        assert 0 == (await member.change(first, 60_000)).code
        assert 208 == (await member.change(old, 1_000)).code
        again = await member.pop(wait=3_000)

        assert [second.body] == bodies(again)
        assert 0 == (await member.ack(old)).code
        assert [] == await member.pop()
        assert 0 == (await member.change(first, 0)).code
        assert [first.body] == bodies(await member.pop(wait=3_000))

    run(work)


def test_messages_are_peeked_at_and_announced_without_being_taken(run: Run) -> None:
    """
    PEEK_MESSAGE and NOTIFICATION leave everything where it is.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, sent=3)

        peeked, told = await member.peek(2), await member.notify()
        found = await member.pop()
        empty, nothing = await member.peek(), await member.notify(200)

        assert (0, "3") == (peeked.code, peeked.ext["restNum"])
        assert ("true", "false") == (told.ext["hasMsg"], nothing.ext["hasMsg"])
        assert 3 == len(found)
        assert 19 == empty.code

    run(work)


def test_news_come_the_moment_a_message_arrives(run: Run) -> None:
    """
    A held NOTIFICATION is answered at once.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster)
        asked = asyncio.create_task(member.notify(20_000))
        sender = await Peer.to(cluster)
        await sender.send("orders", b"x")

        assert "true" == (await asked).ext["hasMsg"]

    run(work)


def test_tags_and_sql_choose_what_is_popped(run: Run) -> None:
    """
    What is not wanted is passed over for good; a wrong condition lets nothing pass.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1)
        for number in range(6):
            tag = "TagA" if number % 2 else "TagB"
            props = f"TAGS\x01{tag}\x02n\x01{number}\x02"
            await member.peer.send("orders", b"%d" % number, 0, props)

        by_tag = await member.pop(exp="TagA")
        by_sql = await Popper(member.peer, group="sql").pop(exp="n > 3", expType="SQL92")
        wrong = await Popper(member.peer, group="bad").ask(exp="n >", expType="SQL92")

        assert [b"1", b"3", b"5"] == bodies(by_tag)
        assert [b"4", b"5"] == bodies(by_sql)
        assert 23 == wrong.code
        assert 210 == (await member.ask()).code

    run(work)


def test_a_new_group_begins_where_it_asks_to(run: Run) -> None:
    """
    A young queue is read from its first message either way, as RocketMQ does it.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=3)

        assert 3 == len(await member.pop(initMode=1))
        assert 3 == len(await Popper(member.peer, group="first").pop(initMode=0))

    run(work)


def test_bad_requests_are_told_what_is_wrong(run: Run) -> None:
    """
    Each with RocketMQ's code; nothing is taken.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, sent=1)
        long_name = Popper(member.peer, group="g" * 250)

        assert 29 == (await member.ask(33)).code
        assert 29 == (await member.ask(queue=2)).code
        assert 17 == (await Popper(member.peer, "nowhere").ask()).code
        refused = await long_name.ask()
        assert 29 == refused.code
        assert "retry topic" in (refused.remark or "")
        wrong = await member.peer.call(
            200051, consumerGroup="g", topic="orders", queueId=0, extraInfo="what", offset=0
        )
        assert 1 == wrong.code
        assert 1 == len(await member.pop())

    run(work)


@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("size", [119, 120, 121, 207])
def test_what_long_names_popped_comes_back_and_outlives_a_restart(size: int, v2: bool) -> None:
    """
    A retry topic of more than 127 characters makes version 2 records, as RocketMQ's broker does.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=2, group="g" * size)
        first = await member.pop(invisible=1_000)
        again = await member.pop(wait=5_000, invisible=1_000)
        await cluster.stop_broker()
        await cluster.start_broker()
        later = Popper(await Peer.to(cluster), group=member.group)
        last = await later.pop(wait=5_000)

        assert [b"0", b"1"] == bodies(first) == bodies(again) == bodies(last)
        assert ["orders"] * 2 == [lent.message.topic for lent in last]
        assert [2, 2] == [lent.message.reconsume_times for lent in last]
        assert {0} == {(await later.ack(lent)).code for lent in last}
        assert [[], []] == [await later.pop(wait=35_000) for _ in range(2)]

    in_memory(work, enable_retry_topic_v2=v2)


def test_a_popped_message_that_is_sent_on_is_a_new_one(run: Run) -> None:
    """
    Its receipt is not stored again: who pops the copy gets a receipt of the copy.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=1)
        await cluster.create_topic("onward", queues=1)
        (lent,) = await member.pop()
        receipt = f"POP_CK\x01{lent.handle}\x02TAGS\x01a\x02"
        await member.peer.send("onward", b"quick", props=receipt)
        await member.peer.send("onward", b"delayed", props=f"{receipt}DELAY\x011\x02")
        items = [batch.Item(0, b"batch", receipt.encode())]
        whole = {"b": "onward", "e": 0, "f": 0, "g": 1, "h": 0, "i": "", "m": "true"}
        await member.peer.call(320, batch.encode(items), a="p", c="TBW102", d=4, **whole)
        onward = Popper(member.peer, "onward")

        found = [*await onward.pop(wait=5_000), *await onward.pop(wait=5_000)]

        assert [b"batch", b"delayed", b"quick"] == bodies(found)
        assert not any("POP_CK" in one.message.properties for one in found)
        assert {"a"} == {one.message.properties["TAGS"] for one in found}

    run(work)


def test_the_fast_port_lends_nothing(run: Run) -> None:
    """
    It is there for sends and heartbeats when pulls and pops take long.
    """

    async def work(cluster: Cluster) -> None:
        await popper(cluster)
        fast = Popper(await Peer.to(cluster, cluster.broker().config.fast_listen_port))

        assert 3 == (await fast.ask()).code

    run(work)


def test_ordered_pops_lend_one_batch_of_a_queue_at_a_time(run: Run) -> None:
    """
    Closed until everything is acknowledged; a waiting pop gets the next batch at that moment.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=4)
        found = await member.pop(2, order="true", attemptId="a")
        waiting = asyncio.create_task(
            Popper(await Peer.to(cluster)).pop(2, order="true", attemptId="b", wait=10_000)
        )
        assert 999 == found[0].handle.revive_queue
        assert [b"0", b"1"] == [one.body for one in found]
        assert 210 == (await member.ask(2, order="true", attemptId="c")).code
        assert 2 == len(await member.pop(2, order="true", attemptId="a"))

        again = await member.pop(2, order="true", attemptId="a")
        assert 0 == (await member.ack(again[1])).code
        assert not waiting.done()
        assert 0 == (await member.ack(again[0])).code

        assert [b"2", b"3"] == [one.body for one in await waiting]
        assert 2 == cluster.broker().registry.offsets.get("g", "orders", 0)

    run(work)


def test_ordered_messages_are_tried_again_in_place(run: Run) -> None:
    """
    When the time is over the same messages come again, counted, and nothing overtakes them.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=3)
        await member.pop(2, 300, order="true", attemptId="a")

        answer = await member.ask(3, order="true", attemptId="b", wait=5_000)
        found = member.lent(answer)

        assert [b"0", b"1", b"2"] == [one.body for one in found]
        assert "0 qo0%0 1;0 qo0%1 1;0 0 0" == answer.ext["orderCountInfo"]
        assert 0 == (await member.ack_many(found)).code
        assert 3 == cluster.broker().registry.offsets.get("g", "orders", 0)

    run(work)


def test_a_reset_opens_an_ordered_queue(run: Run) -> None:
    """
    Progress that an operator moved counts at once, for ordered and other pops.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=4)
        found = await member.pop(2, order="true", attemptId="a")
        cluster.broker().registry.offsets.commit("g", "orders", 0, 3)

        moved = await member.pop(2, order="true", attemptId="b")
        late = await member.ack(found[0])
        cluster.broker().registry.offsets.commit("g", "orders", 0, 0)

        assert [b"3"] == [one.body for one in moved]
        assert 0 == late.code
        assert 4 == len(await member.pop())

    run(work)


def test_assignments_follow_the_mode_of_the_group(run: Run) -> None:
    """
    Pulling members get their share; popping ones any queue, or theirs and their neighbours'.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=4)
        peers = [await Peer.to(cluster) for _ in range(4)]
        for number, peer in enumerate(peers):
            await peer.heartbeat(f"c{number}", "g", "orders")

        async def mine(client: str) -> tuple[str, list[int]]:
            asked = {
                "clientId": client, "consumerGroup": "g", "topic": "orders",
                "messageModel": "CLUSTERING", "strategyName": "AVG",
            }  # fmt: skip
            answer = await peers[0].call(400, fastjson.dumps(asked))
            rows = fastjson.loads(answer.body)["messageQueueAssignments"]
            return rows[0]["mode"], sorted(row["messageQueue"]["queueId"] for row in rows)

        async def set_mode(mode: str, share: int) -> int:
            body = {"topic": "orders", "consumerGroup": "g", "mode": mode}
            done = await peers[0].call(401, fastjson.dumps({**body, "popShareQueueNum": share}))
            return done.code

        assert ("PULL", [2]) == await mine("c2")
        assert 0 == await set_mode("POP", 0)
        assert ("POP", [-1]) == await mine("c2")
        assert 0 == await set_mode("POP", 1)
        assert ("POP", [2, 3]) == await mine("c2")
        assert ("POP", [0, 3]) == await mine("c3")

    run(work)


def test_assignments_cover_all_brokers_of_a_topic(run: Run) -> None:
    """
    Whichever broker is asked, it knows the queues of the others from the name server.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=2)
        peer = await Peer.to(cluster)
        await peer.heartbeat("c", "g", "orders")
        asked = {"clientId": "c", "consumerGroup": "g", "topic": "orders", "strategyName": "AVG"}

        answer = await peer.call(400, fastjson.dumps(asked))
        rows = [row["messageQueue"] for row in fastjson.loads(answer.body)[
            "messageQueueAssignments"
        ]]  # fmt: skip

        found = sorted((row["brokerName"], row["queueId"]) for row in rows)
        assert [(f"broker-{name}", queue) for name in "ab" for queue in (0, 1)] == found

    run(work, brokers=2)


# hours in milliseconds: memory only


def test_after_its_retries_a_message_is_dead() -> None:
    """
    As often as the group allows, then to %DLQ%group, once, with where it came from.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=1)
        async with cluster.admin() as admin:
            await admin.update_group(GroupConfig(group_name="g", retry_max_times=3))
        counts = []
        while found := await member.pop(wait=35_000, invisible=30_000):
            counts.append(found[0].message.reconsume_times)

        dead = await Popper(member.peer, "%DLQ%g", "undertaker").pop()

        assert [0, 1, 2, 3] == counts
        assert [b"0"] == bodies(dead)
        assert "orders" == dead[0].message.properties["DLQ_ORIGIN_TOPIC"]

    in_memory(work)


def test_the_first_pop_is_remembered_through_all_retries() -> None:
    """
    1ST_POP_TIME stays, properties and keys stay, the handle is always the newest.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1)
        props = "UNIQ_KEY\x01ABC\x02TAGS\x01t\x02mine\x01yes\x02"
        await member.peer.send("orders", b"x", 0, props)
        first = await member.pop(invisible=10_000)
        retried = [(await member.pop(wait=35_000, invisible=10_000))[0] for _ in range(3)]

        for one in retried:
            kept = one.message.properties
            assert str(first[0].handle.pop_ms) == kept["1ST_POP_TIME"]
            assert ("ABC", "t", "yes") == (kept["UNIQ_KEY"], kept["TAGS"], kept["mine"])
            assert ("1", RETRY) == (one.handle.flag, RETRY)
        assert [1, 2, 3] == [one.message.reconsume_times for one in retried]

    in_memory(work)


def test_newer_retry_topics_are_used_when_asked_for_and_older_ones_still_read() -> None:
    """
    enableRetryTopicV2 names them %RETRY%group+topic; what lies in the older ones is not forgotten.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=1)
        cluster.broker().store.put(Append(RETRY, 0, b"old"))
        flags = {}
        while found := await member.pop(wait=30_000, invisible=10_000):
            for one in found:
                flags[one.handle.flag] = one.body
                if one.handle.flag != "0":
                    await member.ack(one)

        assert {"0": b"0", "1": b"old", "2": b"0"} == flags
        assert cluster.broker().registry.topics.get("%RETRY%g+orders") is not None

    in_memory(work, enable_retry_topic_v2=True)


def test_every_queue_is_popped_fairly() -> None:
    """
    A queue that always has messages does not keep the others waiting.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=4, sent=400)
        seen = [0] * 4
        for _ in range(40):
            for one in await member.pop(5):
                seen[one.handle.queue_id] += 1

        assert [50] * 4 == seen

    in_memory(work)


def test_a_message_with_the_largest_properties_is_retried_all_the_same() -> None:
    """
    There is no room to note the first pop, nor for the handle; the message comes back anyway.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1)
        added = "MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02CLUSTER\x01DefaultCluster\x02"
        props = "big\x01" + "x" * (32767 - len(added) - 5) + "\x02"
        assert 0 == (await member.peer.send("orders", b"x", 0, props)).code
        await member.pop(invisible=10_000)

        again = await member.pop(wait=35_000)

        assert [b"x"] == bodies(again)
        assert "1" == again[0].handle.flag
        assert 0 == (await member.ack(again[0])).code
        assert [] == await member.pop(wait=35_000)

    in_memory(work)


def test_a_deleted_topic_or_group_leaves_nothing_to_retry() -> None:
    """
    Its checkpoints end quietly.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=1, sent=2)
        await member.pop(1, 10_000)
        async with cluster.admin() as admin:
            await admin.delete_group("g")
        await asyncio.sleep(60)

        assert cluster.broker().registry.topics.get(RETRY) is None

    in_memory(work)


def test_the_revive_log_is_followed_to_its_end() -> None:
    """
    Once everything is settled a start has nothing to read.
    """

    async def work(cluster: Cluster) -> None:
        member = await popper(cluster, queues=2, sent=20)
        for _ in range(10):
            for one in await member.pop(2):
                await member.ack(one)
        await asyncio.sleep(30)

        broker = cluster.broker()
        name = "rmq_sys_REVIVE_LOG_DefaultCluster"
        ends = [broker.store.queues.max_offset(name, queue) for queue in range(8)]
        progress = [
            broker.registry.offsets.get("CID_RMQ_SYS_REVIVE_GROUP", name, queue) or 0
            for queue in range(8)
        ]
        assert ends == progress

    in_memory(work)


def test_one_long_loan_does_not_keep_the_revive_log_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A checkpoint that stays open is carried along, so that a start reads few records.
    """

    monkeypatch.setattr(revive_log, "CARRY_RECORDS", 50)

    async def work(cluster: Cluster) -> tuple[int, int, list[bytes]]:
        member = await popper(cluster, queues=1, sent=1)
        kept = await member.pop(invisible=1_200_000)
        for _ in range(100):
            await member.peer.send("orders", b"x")
            for one in await member.pop():
                await member.ack(one)
        await asyncio.sleep(30)
        name = "rmq_sys_REVIVE_LOG_DefaultCluster"
        progress = cluster.broker().registry.offsets.get("CID_RMQ_SYS_REVIVE_GROUP", name, 0)
        end = cluster.broker().store.queues.max_offset(name, 0)
        await asyncio.sleep(1_200)
        assert 1 == len(kept)
        later = Popper(await Peer.to(cluster))
        return progress or 0, end, bodies(await later.pop(wait=10_000))

    progress, end, found = in_memory(work, revive_queue_num=1)

    assert end > 200
    assert end - progress < 10
    assert [b"0"] == found
