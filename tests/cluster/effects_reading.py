"""Settings whose effect a consumer, a query or another tool sees."""

import asyncio

from effects import Trial, effect, seconds
from peer import Peer, bodies
from popper import Popper

from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.protocol.pop import REVIVE_GROUP, pop_retry_topic, revive_topic
from gantrymq.protocol.subscription import subscription

FORBIDDEN, NO_GROUP, NOT_ONLINE, FULL, NOTHING_YET = 16, 26, 206, 209, 210
IDS_CHANGED = 40


async def _send(trial: Trial, *payloads: str, props: str = "") -> None:
    for payload in payloads:
        assert 0 == (await trial.peer.send("orders", payload.encode(), props=props)).code


# pulling


@effect("longPollingEnable", short_polling_time_mills=700)
async def pulls_are_held(trial: Trial) -> None:
    """For as long as they ask, or for the short time that the broker grants."""
    await trial.create("orders")
    waits = []
    for value in (True, False, True):
        await trial.change(longPollingEnable=value)
        waits.append(await seconds(trial.peer.pull("orders", 0, hold=5_000)))
    assert [5.0, 0.7, 5.0] == waits


@effect("shortPollingTimeMills", long_polling_enable=False)
async def pulls_are_held_a_short_time(trial: Trial) -> None:
    """Before and after."""
    await trial.create("orders")
    waits = []
    for value in (300, 2_000):
        await trial.change(shortPollingTimeMills=value)
        waits.append(await seconds(trial.peer.pull("orders", 0, hold=5_000)))
    assert [0.3, 2.0] == waits


async def _suggested(trial: Trial) -> str:
    return (await trial.peer.pull("orders", 0)).ext["suggestWhichBrokerId"]


@effect("slaveReadEnable", access_message_in_memory_max_ratio=0)
async def groups_far_behind_are_sent_to_a_slave(trial: Trial) -> None:
    """To the one that the settings of the group name; to the master otherwise."""
    await trial.create("orders")
    await _send(trial, *"ab")
    found = []
    for value in (False, True, False):
        await trial.change(slaveReadEnable=value)
        found.append(await _suggested(trial))
    assert ["0", "1", "0"] == found


@effect("accessMessageInMemoryMaxRatio", slave_read_enable=True)
async def groups_are_far_behind_by_a_share_of_memory(trial: Trial) -> None:
    """With nothing as the share any group is, with all of it none."""
    await trial.create("orders")
    await _send(trial, *"ab")
    found = []
    for value in (100, 0, 40):
        await trial.change(accessMessageInMemoryMaxRatio=value)
        found.append(await _suggested(trial))
    assert ["0", "1", "0"] == found


@effect("maxTransferCountOnMessageInMemory")
async def a_pull_gets_so_many_messages(trial: Trial) -> None:
    """However many it asks for."""
    await trial.create("orders")
    await _send(trial, *"abcdefgh")
    found = []
    for value in (100, 3, 5):
        await trial.change(maxTransferCountOnMessageInMemory=value)
        found.append(len(bodies(await trial.peer.pull("orders", 0))))
    assert [8, 3, 5] == found


@effect("maxTransferBytesOnMessageInMemory")
async def a_pull_gets_so_many_bytes(trial: Trial) -> None:
    """Whole messages, as many as fit."""
    await trial.create("orders")
    await _send(trial, *("x" * 1_000 for _ in range(8)))
    found = []
    for value in (100_000, 2_500, 6_000):
        await trial.change(maxTransferBytesOnMessageInMemory=value)
        found.append(len(bodies(await trial.peer.pull("orders", 0))))
    assert [8, 2, 5] == found


@effect("enablePropertyFilter")
async def conditions_are_allowed(trial: Trial) -> None:
    """A pull with one is served, refused, served."""
    await trial.create("orders")
    await _send(trial, "a", props="price\x0111\x02")
    codes = []
    for value in (True, False, True):
        await trial.change(enablePropertyFilter=value)
        codes.append((await _pull_sql(trial, "orders")).code)
    assert [0, 1, 0] == codes


@effect("filterSupportRetry")
async def retries_are_filtered_by_their_origin(trial: Trial) -> None:
    """By the condition of the pull, or by that of the group for the first topic."""
    wanted = subscription("orders", "price > 10", "SQL92", 7)
    consumer = {"groupName": "g", "subscriptionDataSet": [wanted]}
    beat = {"clientID": "c", "consumerDataSet": [consumer], "producerDataSet": []}
    await trial.peer.call(34, fastjson.dumps(beat))
    for price in (1, 20):
        props = f"price\x01{price}\x02RETRY_TOPIC\x01orders\x02"
        await trial.peer.send("%RETRY%g", b"%d" % price, props=props)
    assert [b"1", b"20"] == bodies(await _pull_sql(trial, "%RETRY%g"))
    await trial.change(filterSupportRetry=True)
    assert [b"20"] == bodies(await _pull_sql(trial, "%RETRY%g"))


async def _pull_sql(trial: Trial, topic: str) -> Command:
    return await trial.peer.call(
        11, consumerGroup="g", topic=topic, queueId=0, queueOffset=0, maxMsgNums=32, sysFlag=4,
        commitOffset=0, suspendTimeoutMillis=0, subscription="price > 0", subVersion=0,
        expressionType="SQL92",
    )  # fmt: skip


# queries


@effect("defaultQueryMaxNum")
async def a_query_by_id_finds_so_many(trial: Trial) -> None:
    """All five with the id, then two."""
    assert (5, 2) == await _found(trial, "UNIQ_KEY", "defaultQueryMaxNum", unique="true")


@effect("maxMsgsNumBatch")
async def a_query_by_key_finds_so_many(trial: Trial) -> None:
    """All five with the key, then two."""
    assert (5, 2) == await _found(trial, "KEYS", "maxMsgsNumBatch", unique="false")


async def _found(trial: Trial, name: str, setting: str, *, unique: str) -> tuple[int, int]:
    await trial.create("orders")
    await _send(trial, *"abcde", props=f"{name}\x01k\x02")
    await asyncio.sleep(2)
    counts = []
    for most in (20, 2):
        await trial.change(**{setting: most})
        answer = await trial.peer.call(
            12, topic="orders", key="k", maxNum=32, beginTimestamp=0, endTimestamp=2**60,
            _UNIQUE_KEY_QUERY=unique,
        )  # fmt: skip
        counts.append(len(bodies(answer)))
    return counts[0], counts[1]


# groups and their members


@effect("autoCreateSubscriptionGroup")
async def groups_are_made_on_first_use(trial: Trial) -> None:
    """A pull of an unknown group is refused while it is off."""
    await trial.create("orders")
    codes = []
    for value in (True, False, True):
        await trial.change(autoCreateSubscriptionGroup=value)
        codes.append((await trial.peer.pull("orders", 0, group=f"new-{len(codes)}")).code)
    assert [19, NO_GROUP, 19] == codes


@effect("notifyConsumerIdsChangedEnable")
async def members_are_told_of_each_other(trial: Trial) -> None:
    """A member that comes while it is off is no news."""
    told = []
    await trial.peer.heartbeat("c", "g", "orders")
    for value in (True, False, True):
        await trial.change(notifyConsumerIdsChangedEnable=value)
        trial.peer.pushed.clear()
        other = await Peer.to(trial.cluster)
        await other.heartbeat(f"c{value}{len(told)}", "g", "orders")
        await asyncio.sleep(0.1)
        told.append([push.code for push in trial.peer.pushed])
    assert [[IDS_CHANGED], [], [IDS_CHANGED]] == told


async def _disagree(trial: Trial) -> tuple[Peer, Peer]:
    one, two = trial.peer, await Peer.to(trial.cluster)
    assert 0 == (await _beat(one, "one", "a", 1)).code
    assert 0 == (await _beat(two, "two", "b", 2)).code
    await asyncio.sleep(1)
    return one, two


async def _beat(peer: Peer, client: str, tags: str, version: int) -> Command:
    wanted = subscription("orders", tags, version=version)
    consumer = {"groupName": "g", "subscriptionDataSet": [wanted]}
    body = {"clientID": client, "consumerDataSet": [consumer], "producerDataSet": []}
    return await peer.call(34, fastjson.dumps(body))


@effect("strictSubscriptions", strict_subscriptions_grace_mills=500)
async def a_group_has_to_agree(trial: Trial) -> None:
    """The newer member is kept out when the broker has been strict for the time of grace."""
    _, two = await _disagree(trial)
    assert 0 == (await _beat(two, "two", "b", 2)).code
    await trial.change(strictSubscriptions=True)
    assert 0 == (await _beat(two, "two", "b", 2)).code
    await asyncio.sleep(0.6)
    assert FORBIDDEN == (await _beat(two, "two", "b", 2)).code
    await trial.change(strictSubscriptions=False)
    assert 0 == (await _beat(two, "two", "b", 2)).code


@effect("strictSubscriptionsGraceMills", strict_subscriptions=True)
async def a_group_has_time_to_agree(trial: Trial) -> None:
    """A second is within a minute, and over with a grace of half a second."""
    _, two = await _disagree(trial)
    assert 0 == (await _beat(two, "two", "b", 2)).code
    await trial.change(strictSubscriptionsGraceMills=500)
    assert FORBIDDEN == (await _beat(two, "two", "b", 2)).code


@effect("useServerSideResetOffset")
async def the_broker_resets_by_itself(trial: Trial) -> None:
    """Without it members are told, and without members there is nobody to tell."""
    await trial.create("orders")
    await _send(trial, "a")
    await trial.peer.pull("orders", 0)
    codes = []
    for value in (True, False, True):
        await trial.change(useServerSideResetOffset=value)
        reset = {"group": "g", "topic": "orders", "timestamp": -1, "isForce": "true"}
        codes.append((await trial.peer.call(222, **reset)).code)
    assert [0, NOT_ONLINE, 0] == codes


# popping


async def _popper(trial: Trial, *payloads: str) -> Popper:
    await trial.create("orders")
    await _send(trial, *payloads)
    return Popper(trial.peer)


async def _let_return(popper: Popper) -> None:
    """Take a message and never acknowledge it: it goes to the retry topic."""
    assert 1 == len(await popper.pop(1, invisible=1_000))
    await asyncio.sleep(3)


@effect("popFromRetryProbability", pop_from_retry_probability=0)
async def retries_come_first(trial: Trial) -> None:
    """A pop that gets one message gets a fresh one, then a retried one."""
    popper = await _popper(trial, "again")
    await _let_return(popper)
    await _send(trial, "fresh", "fresher")
    assert [b"fresh"] == [lent.body for lent in await popper.pop(1)]
    await trial.change(popFromRetryProbability=100)
    assert [b"again"] == [lent.body for lent in await popper.pop(1)]


@effect("enableRetryTopicV2", pop_from_retry_probability=0)
async def retry_topics_have_new_names(trial: Trial) -> None:
    """What comes back goes to the topic of the new name, and the old one is still read."""
    popper = await _popper(trial, "a", "b")
    await _let_return(popper)
    await trial.change(enableRetryTopicV2=True)
    await _let_return(popper)
    old, new = (pop_retry_topic("g", "orders", v2) for v2 in (False, True))
    assert (1, 1) == (trial.store.queues.max_offset(old, 0), trial.store.queues.max_offset(new, 0))
    assert [b"b", b"a"] == [lent.body for lent in await popper.pop()]


@effect("retrieveMessageFromPopRetryTopicV1")
async def old_retry_topics_are_read(trial: Trial) -> None:
    """A broker that uses the new names may leave the old ones alone."""
    popper = await _popper(trial, "a")
    await _let_return(popper)
    await trial.change(enableRetryTopicV2=True, retrieveMessageFromPopRetryTopicV1=False)
    assert [] == await popper.pop()
    await trial.change(retrieveMessageFromPopRetryTopicV1=True)
    assert [b"a"] == [lent.body for lent in await popper.pop()]


@effect("popPollingSize")
async def so_many_pops_of_a_group_wait(trial: Trial) -> None:
    """One more than the setting says, as RocketMQ counts."""
    assert [NOTHING_YET] * 4 == await _waiting_pops(trial)
    await trial.change(popPollingSize=1)
    assert [FULL] * 2 + [NOTHING_YET] * 2 == await _waiting_pops(trial)
    await trial.change(popPollingSize=2)
    assert [FULL] + [NOTHING_YET] * 3 == await _waiting_pops(trial)


@effect("maxPopPollingSize")
async def so_many_pops_wait(trial: Trial) -> None:
    """Of all groups together."""
    assert [NOTHING_YET] * 4 == await _waiting_pops(trial)
    await trial.change(maxPopPollingSize=1)
    assert [FULL] * 3 + [NOTHING_YET] == await _waiting_pops(trial)
    await trial.change(maxPopPollingSize=4)
    assert [NOTHING_YET] * 4 == await _waiting_pops(trial)


async def _waiting_pops(trial: Trial) -> list[int]:
    popper = await _popper(trial)
    now = trial.cluster.clock.now_ms()
    asked = [popper.ask(wait=2_000, bornTime=now) for _ in range(4)]
    return sorted(answer.code for answer in await asyncio.gather(*asked))


@effect("reviveInterval", revive_interval=3_600_000, revive_queue_num=1)
async def the_log_of_pops_is_shortened(trial: Trial) -> None:
    """Its progress waits for an hour, then for a second."""
    topic = revive_topic("DefaultCluster")
    popper = await _popper(trial, "a", "b")

    async def settled() -> bool:
        """Whether progress reaches the log's end, some time after a message is acknowledged."""
        await popper.ack((await popper.pop(1))[0])
        await asyncio.sleep(30)
        place = {"consumerGroup": REVIVE_GROUP, "topic": topic, "queueId": 0}
        found = (await trial.peer.call(14, **place)).ext.get("offset")
        return found == str(trial.store.queues.max_offset(topic, 0))

    assert not await settled()
    await trial.change(reviveInterval=1_000)
    assert await settled()


async def _assigned(trial: Trial) -> tuple[str, list[int]]:
    asked = {
        "clientId": "c0", "consumerGroup": "g", "topic": "orders",
        "messageModel": "CLUSTERING", "strategyName": "AVG",
    }  # fmt: skip
    answer = await trial.peer.call(400, fastjson.dumps(asked))
    rows = fastjson.loads(answer.body)["messageQueueAssignments"]
    return rows[0]["mode"], sorted(row["messageQueue"]["queueId"] for row in rows)


async def _members(trial: Trial, count: int) -> None:
    await trial.create("orders", queues=4)
    for number in range(count):
        peer = trial.peer if not number else await Peer.to(trial.cluster)
        await peer.heartbeat(f"c{number}", "g", "orders")
    await asyncio.sleep(1)


@effect("defaultMessageRequestMode")
async def groups_pop_by_default(trial: Trial) -> None:
    """A member that asks for its queues is told to pop."""
    await _members(trial, 2)
    assert ("PULL", [0, 1]) == await _assigned(trial)
    await trial.change(defaultMessageRequestMode="POP")
    assert ("POP", [-1]) == await _assigned(trial)


@effect("defaultPopShareQueueNum", default_message_request_mode="POP")
async def members_share_queues(trial: Trial) -> None:
    """All of them, or a member's own and its neighbour's."""
    await _members(trial, 4)
    assert ("POP", [-1]) == await _assigned(trial)
    await trial.change(defaultPopShareQueueNum=1)
    assert ("POP", [0, 1]) == await _assigned(trial)
