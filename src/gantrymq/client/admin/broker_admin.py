"""Administration of brokers: figures, settings, copies, leadership."""

from collections.abc import Mapping

from gantrymq.base.config import format_properties, parse_properties
from gantrymq.client.admin.admin_base import AdminBase
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import (
    BrokerStatsData,
    ConsumeQueueBody,
    ConsumeStatsList,
    EpochEntryCache,
    HaStatus,
    KvTable,
    ProducerTableInfo,
    RaftStatus,
)
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.clients import BrokerStatsRequest
from gantrymq.protocol.headers.copies import FlushOffsetRequest, TransferLeadershipRequest
from gantrymq.protocol.headers.progress import BrokerConsumeStatsRequest, ConsumeQueueRequest


class BrokerAdmin(AdminBase):
    """Asks and changes one broker, by its address."""

    async def broker_runtime(self, address: str) -> dict[str, str]:
        """A broker's figures, by RocketMQ's names."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_RUNTIME_INFO, Nothing())
        return fastjson.load_as(answer.body, KvTable).table

    async def ha_status(self, address: str) -> HaStatus:
        """How far the slaves of a master are, or how far a slave is."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_HA_STATUS, Nothing())
        return fastjson.load_as(answer.body, HaStatus)

    async def raft_status(self, address: str) -> RaftStatus:
        """What a member of a raft group says of it."""
        _, answer = await self.instance.call(address, calls.GET_RAFT_STATUS, Nothing())
        return fastjson.load_as(answer.body, RaftStatus)

    async def transfer_raft_leadership(self, address: str, to: str | None = None) -> None:
        """Ask the leader of a raft group to hand leadership to a member; the best one by default.

        It returns when that has begun: `raft_status` says who leads.
        """
        header = TransferLeadershipRequest(to=to or "")
        await self.instance.call(address, calls.TRANSFER_RAFT_LEADERSHIP, header)

    async def broker_config(self, address: str) -> dict[str, str]:
        """A broker's settings, by RocketMQ's names."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_CONFIG, Nothing())
        return parse_properties(answer.body.decode("utf-8", "replace"))

    async def update_broker_config(self, address: str, changes: Mapping[str, str]) -> str | None:
        """Change settings of a running broker; returns its remark on those not yet in force."""
        body = format_properties(changes).encode()
        _, answer = await self.instance.call(address, calls.UPDATE_BROKER_CONFIG, Nothing(), body)
        return answer.remark

    async def broker_stats(self, address: str, name: str, key: str) -> BrokerStatsData | None:
        """A statistic of the last minute, hour and day; None if nothing was counted for it.

        Names are RocketMQ's, as TOPIC_PUT_NUMS; the key is a topic or `topic@group`.
        """
        _, answer = await self.instance.call(
            address,
            calls.VIEW_BROKER_STATS_DATA,
            BrokerStatsRequest(stats_name=name, stats_key=key),
            expect=(ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR),
        )
        if answer.code != ResponseCode.SUCCESS:
            return None
        return fastjson.load_as(answer.body, BrokerStatsData)

    async def broker_consume_stats(
        self, address: str, *, order: bool = False, timeout: float | None = None
    ) -> ConsumeStatsList:
        """The progress of all groups of a broker: those of order topics, or all others."""
        header = BrokerConsumeStatsRequest(is_order=order)
        _, answer = await self.instance.call(
            address, calls.GET_BROKER_CONSUME_STATS, header, timeout=timeout
        )
        return fastjson.load_as(answer.body, ConsumeStatsList)

    async def broker_producers(self, address: str) -> ProducerTableInfo:
        """The members of every producer group that are connected to a broker."""
        _, answer = await self.instance.call(address, calls.GET_ALL_PRODUCER_INFO, Nothing())
        return fastjson.load_as(answer.body, ProducerTableInfo)

    async def broker_epochs(self, address: str) -> EpochEntryCache:
        """Where each epoch of a broker's masters begins in its log."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_EPOCH_CACHE, Nothing())
        return fastjson.load_as(answer.body, EpochEntryCache)

    async def queue_entries(self, address: str, wanted: ConsumeQueueRequest) -> ConsumeQueueBody:
        """Entries of a consume queue, with the verdict of a group's filter if one is asked for."""
        _, answer = await self.instance.call(address, calls.QUERY_CONSUME_QUEUE, wanted)
        return fastjson.load_as(answer.body, ConsumeQueueBody)

    async def clean_expired_queues(self, address: str) -> None:
        """Delete entries of consume queues whose messages are deleted."""
        await self.instance.call(address, calls.CLEAN_EXPIRED_CONSUMEQUEUE, Nothing())

    async def clean_unused_topics(self, address: str) -> None:
        """Delete consume queues of topics that do not exist any more."""
        await self.instance.call(address, calls.CLEAN_UNUSED_TOPIC, Nothing())

    async def delete_expired_log(self, address: str) -> None:
        """Delete the files of the commit log that are older than fileReservedTime, now."""
        await self.instance.call(address, calls.DELETE_EXPIRED_COMMITLOG, Nothing())

    async def reset_master_flush_offset(self, address: str, offset: int) -> None:
        """Tell a slave up to where its master has flushed."""
        header = FlushOffsetRequest(master_flush_offset=offset)
        await self.instance.call(address, calls.RESET_MASTER_FLUSH_OFFSET, header)
