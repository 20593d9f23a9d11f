"""Requests of operators about a raft group: who leads, how far members are, who leads next."""

from gantrymq.base.javatypes import LONG_MAX
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import EpochEntry, EpochEntryCache, RaftMemberInfo, RaftStatus
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection
from gantrymq.replication.group.node import RaftNode
from gantrymq.replication.raft import NotServing


class RaftGroupHandler:
    """Answers for the member that this broker is."""

    def __init__(self, config: BrokerConfig, node: RaftNode | None) -> None:
        self._config, self._node = config, node

    @property
    def _member(self) -> RaftNode:
        if self._node is None:
            raise BadRequest("this broker is not a member of a raft group")
        return self._node

    async def status(self, connection: Connection, command: Command) -> Command:
        """GET_RAFT_STATUS (40106): the member's position; a leader's followers besides."""
        return response(command, body=fastjson.dumps(_status_of(self._member)))

    async def epochs(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_EPOCH_CACHE (1007): where in the log each term of the raft group begins.

        RocketMQ's epochs are those of its controller; a broker without one refuses.
        """
        if self._node is None:
            raise BadRequest("this request only for controllerMode: here, for raft groups")
        log, config = self._node.core.log, self._config
        ends = [epoch.offset for epoch in log.epochs[1:]]
        rows = [
            EpochEntry(epoch=epoch.term, start_offset=epoch.offset, end_offset=end)
            for epoch, end in zip(log.epochs, [*ends, LONG_MAX], strict=False)
        ]
        found = EpochEntryCache(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=config.broker_id,
            epoch_list=rows,
            max_offset=log.end,
        )
        return response(command, body=fastjson.dumps(found))

    async def transfer(self, connection: Connection, command: Command) -> Command:
        """TRANSFER_RAFT_LEADERSHIP (40107): hand leadership to a member, or to the best one."""
        h = c.TRANSFER_RAFT_LEADERSHIP.request.parse(command.ext)
        node = self._member
        if h.to and h.to not in node.identity.members:
            known = ", ".join(node.identity.members)
            raise BadRequest(f"{h.to} is no member of {node.identity.group}, which has {known}")
        if h.to == node.identity.me:
            raise BadRequest(f"{h.to} is the member that was asked: name another one")
        try:
            node.transfer(h.to or None)
        except NotServing as error:
            raise BadRequest(str(error)) from error
        return response(command)


def _status_of(node: RaftNode) -> RaftStatus:
    core, identity, leadership = node.core, node.identity, node.core.leadership
    progress = leadership.followers if leadership is not None else {}
    return RaftStatus(
        group=identity.group,
        me=identity.me,
        role=core.role.value,
        serves=node.position.leads,
        term=core.term,
        leader=core.leader,
        may_vote=core.stored.may_vote,
        log_first=core.log.first,
        log_end=core.log.end,
        committed=core.commit,
        trouble=node.trouble,
        members=[
            RaftMemberInfo(
                id=name,
                address=node.address_of(name),
                is_connected=name == identity.me or name in node.connected,
                holds=progress[name].match if name in progress else None,
            )
            for name in identity.members
        ],
    )
