"""Commands that send messages: one of the operator's, or many to see how long they take."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import GantryError
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.values import shown_time, truth, whole
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.routes import publish_queues
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message, Queue, SendResult

RESULT = (
    Column("brokerName", "#Broker Name", 32),
    Column("queueId", "#QID", 4),
    Column("sendResult", "#Send Result", 20),
)


@asynccontextmanager
async def producer_of(
    call: Invocation, group: str, *, trace: bool = False
) -> AsyncIterator[Producer]:
    """A producer beside the admin client."""
    async with Producer(client=call.admin.instance.options, group=group, trace=trace) as producer:
        yield producer


@command(
    "sendMessage",
    "Send a message.",
    AdminOption("t", "topic", "Name of the topic.", required=True),
    AdminOption("p", "body", "The body, as UTF-8.", required=True),
    AdminOption("k", "key", "Keys, spaces between."),
    AdminOption("c", "tags", "The tag."),
    AdminOption("b", "broker", "With -i: name of the broker."),
    AdminOption("i", "qid", "With -b: number of the queue.", read=whole),
    AdminOption("m", "msgTraceEnable", "true: trace it.", read=truth, default=False),
)
async def send_message(call: Invocation) -> None:
    if (call["broker"] is None) != (call["qid"] is None):
        raise WrongOption("-b and -i are given together")
    message = Message(
        call["topic"], call["body"].encode(), tags=call["tags"], keys=(call["key"] or "").split()
    )
    queue = Queue(call["topic"], call["broker"], call["qid"]) if call["broker"] else None
    async with producer_of(call, "mqadmin_send", trace=call["msgTraceEnable"]) as producer:
        result = await producer.send(message, queue=queue)
    row = call.out.table([*RESULT, Column("msgId", "#MsgId")])
    row(result.queue.broker_name, result.queue.queue_id, result.status, result.msg_id)


class Timed(NamedTuple):
    """One send: where it went, whether it was stored, how long it took."""

    queue: Queue
    result: SendResult | None
    ms: float


async def timed_send(producer: Producer, message: Message, queue: Queue) -> Timed:
    loop = asyncio.get_running_loop()
    began, result = loop.time(), None
    with suppress(GantryError):  # counted as a failed send
        result = await producer.send(message, queue=queue)
    return Timed(queue, result, (loop.time() - began) * 1000)


async def writable_queues(call: Invocation, topic: str) -> list[Queue]:
    """The queues that messages of a topic may be sent to."""
    route = await call.admin.topic_route(topic)
    queues = publish_queues(route, topic)
    if not queues:
        raise ClientError(f"topic {topic!r} has no queue that takes messages")
    return queues


AMOUNT = AdminOption("a", "amount", "Messages; 100 by default.", read=whole, default=100)
SIZE = AdminOption("s", "size", "Bytes a message; 128 by default.", read=whole, default=128)


@command(
    "checkMsgSendRT",
    "Check message send response time.",
    AdminOption("t", "topic", "Name of the topic.", required=True),
    AMOUNT,
    SIZE,
)
async def check_msg_send_rt(call: Invocation) -> None:
    queues = await writable_queues(call, call["topic"])
    message = Message(call["topic"], b"a" * max(call["size"], 1))
    row = call.out.table([*RESULT, Column("rtMs", "#RT", show=lambda ms: f"{ms:.0f}")])
    times = []
    async with producer_of(call, "mqadmin_rt") as producer:
        for queue, _ in zip(itertools.cycle(queues), range(call["amount"]), strict=False):
            sent = await timed_send(producer, message, queue)
            row(queue.broker_name, queue.queue_id, str(sent.result is not None).lower(), sent.ms)
            times.append(sent.ms)
    # The first one opens the connection and does not count, as in RocketMQ.
    average = sum(times[1:]) / max(len(times) - 1, 1)
    call.out.field("averageRtMs", average, f"Avg RT: {average:.2f}")


@command(
    "sendMsgStatus",
    "Send msg to broker.",
    AdminOption("b", "brokerName", "Name of the broker.", required=True),
    AdminOption("s", "messageSize", "Bytes a message; 128 by default.", read=whole, default=128),
    AdminOption("c", "count", "Messages; 50 by default.", read=whole, default=50),
)
async def send_msg_status(call: Invocation) -> None:
    """Sends to the topic that is named like the broker."""
    name = call["brokerName"]
    await call.admin.members(broker=name)
    queues = await writable_queues(call, name)
    message = Message(name, b"a" * max(call["messageSize"], 1))
    async with producer_of(call, "PID_SMSC") as producer:
        await timed_send(producer, message, queues[0])
        for queue, _ in zip(itertools.cycle(queues), range(call["count"]), strict=False):
            sent = await timed_send(producer, message, queue)
            status = sent.result.status if sent.result else "FAILED"
            place = f"messageQueue={queue}, queueOffset={sent.result.offset if sent.result else -1}"
            call.out.item(
                {"rtMs": sent.ms, "status": status, "queue": str(queue)},
                lambda ms=sent.ms, status=status, place=place: [  # type: ignore[misc]
                    f"rt={ms:.0f}ms, SendResult=SendResult [sendStatus={status}, {place}]"
                ],
            )


CLUSTER_RT = (
    Column("clusterName", "#Cluster Name", 24),
    Column("brokerName", "#Broker Name", 24),
    Column("rtMs", "#RT", 8, show=lambda ms: f"{ms:.2f}"),
    Column("successCount", "#successCount", 16),
    Column("failCount", "#failCount", 16),
)


@command(
    "clusterRT",
    "List All clusters Message Send RT.",
    AMOUNT,
    SIZE,
    AdminOption("c", "cluster", "Only this cluster."),
    AdminOption("p", "print log", "true: one line a broker, for logs.", read=truth, default=False),
    AdminOption("m", "machine room", "Name of the machine room in these lines.", default="noname"),
    AdminOption(
        "i",
        "interval",
        "Seconds between rounds; 10 by default, 0 for one round.",
        read=float,
        default=10.0,
    ),
)
async def cluster_rt(call: Invocation) -> None:
    info = await call.admin.cluster()
    if call["cluster"] is not None and call["cluster"] not in info.cluster_addr_table:
        raise ClientError(f"cluster [{call['cluster']}] not exist")
    places = [
        (cluster, name)
        for cluster, names in sorted(info.cluster_addr_table.items())
        if call["cluster"] in (None, cluster)
        for name in sorted(names)
    ]
    row = call.out.table(CLUSTER_RT) if not call["print log"] else None
    while True:
        for cluster, name in places:
            found = await _round(call, name)
            if row is not None:
                row(cluster, name, *found)
            else:
                now = shown_time(SystemClock().now_ms())[:19]
                call.out.text(f"{now}|{call['machine room']}|{cluster}|{name}|{found[0]:.0f}")
        if not call["interval"]:
            return
        await asyncio.sleep(call["interval"])


async def _round(call: Invocation, broker: str) -> tuple[float, int, int]:
    """Average ms, stored and failed messages of one round of sends to a broker's own topic."""
    queues = await writable_queues(call, broker)
    message = Message(broker, b"a" * max(call["size"], 1))
    async with producer_of(call, "mqadmin_rt") as producer:
        sent = [
            await timed_send(producer, message, queue)
            for queue, _ in zip(itertools.cycle(queues), range(call["amount"]), strict=False)
        ]
    stored = sum(each.result is not None for each in sent)
    average = sum(each.ms for each in sent[1:]) / max(len(sent) - 1, 1)
    return average, stored, len(sent) - stored


COMMANDS = (send_message, check_msg_send_rt, send_msg_status, cluster_rt)
