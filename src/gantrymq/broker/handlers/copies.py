"""Requests of slaves to their master: introduction, tables, and the state of the copies."""

import zlib
from collections.abc import Awaitable, Mapping
from typing import Any

from msgspec import UNSET

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.network import split_address
from gantrymq.broker.copies.log_comparison import COMPARED_BYTES_MAX
from gantrymq.broker.errors import BadRequest, LogDiffers
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.waiting.timer.checkpoint import load_check
from gantrymq.model import DataVersion
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import HaClientInfo, HaConnectionInfo, HaStatus
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers.copies import (
    CompareLogResponse,
    HaInfo,
    IntroduceSlaveRequest,
    IntroduceSlaveResponse,
)
from gantrymq.remoting.connection import Connection
from gantrymq.replication.group.node import RaftNode
from gantrymq.replication.ha.in_sync import InSyncSlaves
from gantrymq.replication.ha.master import PROMISED_HEARTBEAT_SECONDS, HaMaster, SlaveIdentity
from gantrymq.replication.ha.slave import HaSlave
from gantrymq.store.engine import Store


class CopyHandler:
    """Requests about copies; a broker is either a master with an HA port or a slave."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        disk: Disk,
        clock: WallClock,
        slaves: InSyncSlaves,
        role: HaMaster | HaSlave | RaftNode,
        addresses: tuple[str, str],
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._disk, self._clock, self._slaves, self._role = disk, clock, slaves, role
        self._addresses = addresses
        """For clients, and the HA port."""

    async def introduce(self, connection: Connection, command: Command) -> Command:
        """INTRODUCE_SLAVE (40105): take an HA connection as that of a slave of this broker."""
        h = c.INTRODUCE_SLAVE.request.parse(command.ext)
        role = self._role
        if isinstance(role, RaftNode):
            raise BadRequest(
                f"{self._config.broker_name} is a raft group: it takes no slaves but its members. "
                "Give this broker enableDLegerCommitLog, dLegerGroup, dLegerPeers and dLegerSelfId"
            )
        if isinstance(role, HaSlave):
            raise BadRequest(
                f"{self._config.broker_name} at this address is a slave itself "
                f"(brokerId={self._config.broker_id}): follow its master"
            )
        self._check_identity(h)
        await self._check_log(h)
        client = split_address(h.ha_client)
        other = role.rival_of(client, h.broker_id)
        if other is not None:
            raise BadRequest(
                f"brokerId={h.broker_id} of {h.broker_name} is connected from "
                f"{other[0]}:{other[1]} already: give each slave its own brokerId"
            )
        role.introduce(client, SlaveIdentity(h.broker_id, h.wants_all, h.report_ms / 1000))
        answer = IntroduceSlaveResponse(heartbeat_ms=int(PROMISED_HEARTBEAT_SECONDS * 1000))
        return response(command, ext=answer.to_ext())

    def _check_identity(self, h: IntroduceSlaveRequest) -> None:
        ours = self._config.broker_cluster_name, self._config.broker_name
        if (h.cluster_name, h.broker_name) != ours:
            raise BadRequest(
                f"this is the master of {ours[1]} in cluster {ours[0]}, the slave is one of "
                f"{h.broker_name} in cluster {h.cluster_name}: its brokerClusterName and "
                "brokerName have to be its master's"
            )
        size = self._store.log_bytes.file_bytes
        if h.file_bytes != size:
            raise BadRequest(
                f"the slave's mappedFileSizeCommitLog is {h.file_bytes}, the master's {size}: "
                "give both the same size"
            )

    async def _check_log(self, h: IntroduceSlaveRequest) -> None:
        """Refuse a slave whose log is longer than this one, or ends with other bytes."""
        log = self._store.log_bytes
        if h.log_end > log.end.value:
            raise LogDiffers(
                f"the slave's log ends at {h.log_end}, behind the master's end {log.end.value}: "
                "the master has lost what the slave still has"
            )
        start = h.log_end - h.tail_bytes
        if not h.tail_bytes or start < log.min:
            return
        read = log.read(start, h.tail_bytes)
        tail = await read if isinstance(read, Awaitable) else read
        if len(tail) == h.tail_bytes and zlib.crc32(tail) != h.tail_crc:
            raise LogDiffers(
                f"the slave's log differs from the master's before offset {h.log_end}: it is the "
                "copy of another broker, or the master lost messages that the slave has"
            )

    async def compare(self, connection: Connection, command: Command) -> Command:
        """COMPARE_LOG (40110): a checksum of this log, for a slave that looks for common bytes."""
        h = c.COMPARE_LOG.request.parse(command.ext)
        if not 0 <= h.size <= COMPARED_BYTES_MAX:
            raise BadRequest(f"{h.size} bytes of the log: at most {COMPARED_BYTES_MAX} at once")
        log = self._store.log_bytes
        read = log.read(h.position, h.size)
        data = await read if isinstance(read, Awaitable) else read
        answer = CompareLogResponse(size=len(data), crc=zlib.crc32(data), log_min=log.min)
        return response(command, ext=answer.to_ext())

    def _with_version(self, table: Mapping[str, Any]) -> bytes:
        """RocketMQ's slaves want a version in every table; they do not look at this one."""
        version = DataVersion(timestamp=self._clock.now_ms())
        return fastjson.dumps({"dataVersion": version, "offsetTable": table})

    async def offsets(self, connection: Connection, command: Command) -> Command:
        """GET_ALL_CONSUMER_OFFSET (43): the progress of all groups."""
        return response(command, body=self._with_version(self._registry.offsets.shown()))

    async def delay_offsets(self, connection: Connection, command: Command) -> Command:
        """GET_ALL_DELAY_OFFSET (45): the progress of the delay levels."""
        return response(command, body=self._with_version(self._registry.delays.shown()))

    async def timer_check(self, connection: Connection, command: Command) -> Command:
        """GET_TIMER_CHECK_POINT (60): the progress of timers, as their file has it."""
        path = f"{self._config.store_path_root_dir}/config/timercheck"
        return response(command, body=load_check(self._disk, path).encode())

    async def ha_info(self, connection: Connection, command: Command) -> Command:
        """EXCHANGE_BROKER_HA_INFO (906): where slaves find this master.

        A slave learns of its master from name servers, so nobody may name it another one.
        """
        h = c.EXCHANGE_BROKER_HA_INFO.request.parse(command.ext)
        if h.master_ha_address is not None:
            raise BadRequest("a broker learns who its master is from name servers, not by request")
        if not isinstance(self._role, HaMaster):
            return response(command)
        address, ha_address = self._addresses
        answer = HaInfo(
            master_ha_address=ha_address,
            master_flush_offset=self._store.flushed.value,
            master_address=address,
        )
        return response(command, ext=answer.to_ext())

    async def status(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_HA_STATUS (907): how far each slave is, or how far this slave is."""
        role = self._role
        end = self._store.log_max
        if isinstance(role, RaftNode):
            return response(command, body=fastjson.dumps(_member_status(role, end)))
        if isinstance(role, HaSlave):
            return response(command, body=fastjson.dumps(self._slave_status(role, end)))
        in_sync = self._slaves.in_sync(end, connection.loop.time())
        rows = [
            HaConnectionInfo(
                addr=slave.address,
                slave_ack_offset=slave.progress.acknowledged,
                diff=end - slave.progress.acknowledged,
                in_sync=slave.progress in in_sync,
                transferred_byte_in_second=slave.bytes_per_second,
                transfer_from_where=slave.progress.sent,
                broker_id=UNSET if (known := role.broker_id_of(slave)) is None else known,
            )
            for slave in role.connections
            if slave.progress is not None
        ]
        status = HaStatus(
            master=True,
            master_commit_log_max_offset=end,
            in_sync_slave_nums=len(in_sync),
            ha_connection_info=rows,
        )
        return response(command, body=fastjson.dumps(status))

    def _slave_status(self, slave: HaSlave, end: int) -> HaStatus:
        connected = slave.connection
        info = HaClientInfo(
            master_addr=slave.address or "",
            max_offset=end,
            activated=connected is not None,
        )
        return HaStatus(master=False, master_commit_log_max_offset=end, ha_client_runtime_info=info)


def _member_status(node: RaftNode, end: int) -> HaStatus:
    """A raft group in RocketMQ's words: the leader is the master, followers are slaves."""
    leadership = node.core.leadership
    if leadership is None:
        info = HaClientInfo(
            master_addr=node.leader_address or "",
            max_offset=end,
            activated=node.core.leader is not None,
        )
        return HaStatus(master=False, master_commit_log_max_offset=end, ha_client_runtime_info=info)
    rows = [
        HaConnectionInfo(
            addr=node.address_of(name),
            slave_ack_offset=follower.match,
            diff=end - follower.match,
            in_sync=follower.match >= node.core.commit,
            transferred_byte_in_second=0,
            transfer_from_where=follower.next,
        )
        for name, follower in leadership.followers.items()
    ]
    return HaStatus(
        master=True,
        master_commit_log_max_offset=end,
        in_sync_slave_nums=sum(row.in_sync for row in rows),
        ha_connection_info=rows,
    )
