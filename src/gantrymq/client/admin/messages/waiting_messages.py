"""Waiting messages of all brokers: those in delay levels and timer messages."""

from collections.abc import Mapping
from typing import Final

from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.timers import WaitingRequest
from gantrymq.protocol.waiting import WaitingTable

SECONDS_MAX: Final = 15.0
"""A broker with very many waiting messages takes a while to look through them."""


class CannotTell(ClientError):
    """The broker has no request for it."""


async def waiting(
    instance: Instance, masters: Mapping[str, str], topic: str | None, count: int, from_ms: int
) -> dict[str, WaitingTable]:
    """The waiting messages by broker; raises ClientError for RocketMQ's, which cannot tell."""
    header = WaitingRequest(topic=topic, count=count, from_ms=from_ms)
    found: dict[str, WaitingTable] = {}
    for name, address in sorted(masters.items()):
        try:
            _, answer = await instance.call(
                address, calls.GET_WAITING_MESSAGES, header, timeout=SECONDS_MAX
            )
        except BrokerRefused as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            raise CannotTell(f"broker {name} cannot tell what waits: only GantryMQ can") from error
        found[name] = fastjson.load_as(answer.body, WaitingTable)
    return found
