"""Requests of operators that only a consumer can answer: the broker relays them."""

from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.protocol import calls as c
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.ids import parse_offset_msg_id
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.pending_call import CallTimeout
from gantrymq.store.engine import Store

RELAY_SECONDS_MAX = 10.0


class RelayHandler:
    """GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY."""

    def __init__(self, config: BrokerConfig, store: Store, sessions: Sessions) -> None:
        self._config, self._store, self._sessions = config, store, sessions

    async def running_info(self, connection: Connection, command: Command) -> Command:
        """GET_CONSUMER_RUNNING_INFO (307): the consumer's own report of its state."""
        h = c.GET_CONSUMER_RUNNING_INFO.request.parse(command.ext)
        return await self._relay(command, h.consumer_group, h.client_id, command.ext, command.body)

    async def consume_directly(self, connection: Connection, command: Command) -> Command:
        """CONSUME_MESSAGE_DIRECTLY (309): let one consumer handle one stored message now."""
        h = c.CONSUME_MESSAGE_DIRECTLY.request.parse(command.ext)
        record = await self._store.reads.message_at(parse_offset_msg_id(h.msg_id or "").offset)
        if record is None:
            raise BadRequest(f"no message {h.msg_id} on this broker")
        ext = {**command.ext, "brokerName": self._config.broker_name}
        return await self._relay(command, h.consumer_group, h.client_id, ext, record)

    async def _relay(
        self, command: Command, group: str, client_id: str | None, ext: dict[str, str], body: bytes
    ) -> Command:
        member = self._member(group, client_id)
        if member is None:
            raise BadRequest(f"The Consumer <{group}> <{client_id}> not online")
        request = Command(code=command.code, ext=ext, body=body)
        try:
            answer = await member.call(request, RELAY_SECONDS_MAX)
        except CallTimeout as error:
            remark = f"consumer <{group}> <{client_id}> Timeout: {error}"
            return response(command, ResponseCode.CONSUME_MSG_TIMEOUT, remark=remark)
        except GantryError as error:
            raise BadRequest(f"invoke consumer <{group}> <{client_id}> failed: {error}") from error
        return response(
            command, answer.code, ext=answer.ext, remark=answer.remark, body=answer.body
        )

    def _member(self, group: str, client_id: str | None) -> Connection | None:
        """The connection with the client's newest heartbeat; None if the client is not online.

        A client that reconnected may still have its old connection in the group.
        """
        members = self._sessions.consumers.get(group)
        found = [
            (client.heard, connection)
            for connection, client in (members.members.items() if members is not None else ())
            if client.client_id == client_id and connection.open
        ]
        return max(found, key=lambda pair: pair[0])[1] if found else None
