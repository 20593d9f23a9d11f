"""Pops by hand: what a client library would say, word for word."""

from typing import Any

from peer import Peer

from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.protocol.pop import Handle, bit_set, parse_info, real_topic, retry_flag
from gantrymq.protocol.record import StoredMessage, decode_records

POP, ACK, PEEK, CHANGE, NOTIFY, POLLING, BATCH_ACK = (
    200050, 200051, 200052, 200053, 200054, 200055, 200151,
)  # fmt: skip


class Lent:
    """A popped message with its handle."""

    def __init__(self, message: StoredMessage, handle: Handle) -> None:
        self.message, self.handle = message, handle

    @property
    def body(self) -> bytes:
        return self.message.body


class Popper:
    """One member of a group, on one connection."""

    def __init__(self, peer: Peer, topic: str = "orders", group: str = "g") -> None:
        self.peer, self.topic, self.group = peer, topic, group

    async def ask(
        self, count: int = 32, invisible: int = 60_000, wait: int = 0, queue: int = -1, **more: Any
    ) -> Command:
        fields = {"bornTime": 0, "initMode": 0, "exp": "*", "expType": "TAG", "order": "false"}
        return await self.peer.call(
            POP, consumerGroup=self.group, topic=self.topic, queueId=queue, maxMsgNums=count,
            invisibleTime=invisible, pollTime=wait, **{**fields, **more},
        )  # fmt: skip

    async def pop(self, count: int = 32, invisible: int = 60_000, **more: Any) -> list[Lent]:
        return self.lent(await self.ask(count, invisible, **more))

    def lent(self, answer: Command) -> list[Lent]:
        starts = parse_info(answer.ext.get("startOffsetInfo"))
        found = []
        for message in decode_records(answer.body):
            given = message.properties.get("POP_CK")
            if given is not None:
                handle = Handle.parse(given)
            else:
                flag = retry_flag(message.topic)
                handle = Handle(
                    int(starts[flag, str(message.queue_id)]), int(answer.ext["popTime"]),
                    int(answer.ext["invisibleTime"]), int(answer.ext["reviveQid"]), flag,
                    "broker-a", message.queue_id, message.queue_offset,
                )  # fmt: skip
            found.append(Lent(message, handle))
        return found

    def _about(self, lent: Lent) -> dict[str, Any]:
        handle = lent.handle
        return {
            "consumerGroup": self.group,
            "topic": real_topic(self.topic, self.group, handle.flag),
            "queueId": handle.queue_id,
            "extraInfo": str(handle),
            "offset": handle.offset,
        }

    async def ack(self, lent: Lent) -> Command:
        return await self.peer.call(ACK, **self._about(lent))

    async def change(self, lent: Lent, invisible: int) -> Command:
        """The message's handle is the new one afterwards."""
        answer = await self.peer.call(CHANGE, **self._about(lent), invisibleTime=invisible)
        if answer.code == 0:
            lent.handle = lent.handle._replace(
                start=lent.handle.offset,
                pop_ms=int(answer.ext["popTime"]),
                invisible_ms=int(answer.ext["invisibleTime"]),
                revive_queue=int(answer.ext["reviveQid"]),
            )
        return answer

    async def ack_many(self, lent: list[Lent]) -> Command:
        acks = [
            {
                "c": self.group, "t": self.topic, "r": one.handle.flag, "so": one.handle.start,
                "q": one.handle.queue_id, "rq": one.handle.revive_queue, "pt": one.handle.pop_ms,
                "it": one.handle.invisible_ms,
                "b": bit_set([one.handle.offset], one.handle.start),
            }
            for one in lent
        ]  # fmt: skip
        body = fastjson.dumps({"brokerName": "broker-a", "acks": acks})
        return await self.peer.call(BATCH_ACK, body)

    async def peek(self, count: int = 32, queue: int = -1) -> Command:
        return await self.peer.call(
            PEEK, consumerGroup=self.group, topic=self.topic, queueId=queue, maxMsgNums=count
        )

    async def notify(self, wait: int = 0, **more: Any) -> Command:
        return await self.peer.call(
            NOTIFY, consumerGroup=self.group, topic=self.topic, queueId=-1, pollTime=wait,
            bornTime=0, **more,
        )  # fmt: skip

    async def polling(self, queue: int = -1) -> int:
        answer = await self.peer.call(
            POLLING, consumerGroup=self.group, topic=self.topic, queueId=queue
        )
        return int(answer.ext["pollingNum"])
