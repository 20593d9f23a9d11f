"""Assignments that the broker computes, and the request mode (pull or POP) of groups."""

from gantrymq.broker.errors import NotPermitted, TopicMissing
from gantrymq.broker.policy import Policy
from gantrymq.broker.pop.assignment import STRATEGIES, assign_for_pop, assign_for_pull
from gantrymq.broker.pop.topic_routes import TopicRoutes
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.tables.request_modes import ModeTable
from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.pop import (
    AssignmentRequest,
    Assignments,
    QueueAssignment,
    RequestMode,
)
from gantrymq.remoting.connection import Connection


class AssignmentHandler:
    """QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE and GET_ALL_MESSAGE_REQUEST_MODE."""

    def __init__(
        self,
        registry: Registry,
        sessions: Sessions,
        policy: Policy,
        modes: ModeTable,
        routes: TopicRoutes,
    ) -> None:
        self._registry, self._sessions, self._policy = registry, sessions, policy
        self._modes, self._routes = modes, routes

    async def query(self, connection: Connection, command: Command) -> Command:
        """QUERY_ASSIGNMENT (400): the queues of one member, and whether it pulls or pops them.

        An answer without a list means that the member keeps the queues it has.
        """
        asked = fastjson.load_request(command.body or b"{}", AssignmentRequest)
        mode = self._modes.of(asked.topic, asked.consumer_group)
        mine = await self._queues(asked, mode, connection.loop.time())
        rows = None
        if mine is not None:
            rows = [QueueAssignment(message_queue=queue, mode=mode.mode) for queue in mine]
        return response(command, body=fastjson.dumps(Assignments(message_queue_assignments=rows)))

    async def _queues(
        self, asked: AssignmentRequest, mode: RequestMode, now: float
    ) -> list[Queue] | None:
        """The member's queues; None if the route, the group or the strategy is unknown."""
        queues = await self._routes.queues(asked.topic, now)
        if queues is None or asked.message_model == "BROADCASTING":
            return queues
        group = self._sessions.consumers.get(asked.consumer_group)
        strategy = STRATEGIES.get(asked.strategy_name)
        if group is None or strategy is None:
            return None
        clients = group.client_ids
        if mode.mode == "POP":
            shared = mode.pop_share_queue_num
            return assign_for_pop(strategy, asked.client_id, queues, clients, shared)
        return assign_for_pull(strategy, asked.client_id, queues, clients)

    async def set_mode(self, connection: Connection, command: Command) -> Command:
        """SET_MESSAGE_REQUEST_MODE (401): let a group pull or pop a topic."""
        mode = fastjson.load_request(command.body or b"{}", RequestMode)
        if mode.topic.startswith(RETRY_PREFIX):
            raise NotPermitted("retry topic is not allowed to set mode")
        if self._registry.topics.get(mode.topic) is None:
            raise TopicMissing(f"topic[{mode.topic}] not exist")
        self._policy.group(mode.consumer_group)
        await self._modes.put(mode)
        return response(command)

    async def all_modes(self, connection: Connection, command: Command) -> Command:
        """GET_ALL_MESSAGE_REQUEST_MODE (402): the modes that were set, by topic and group."""
        return response(command, body=fastjson.dumps(self._modes.all))
