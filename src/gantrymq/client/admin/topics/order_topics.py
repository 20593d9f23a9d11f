"""Strict order: the fixed queue list of a topic, kept by the name servers.

Without a list a producer hashes keys over the queues of the route, so that a key gets another queue
when a broker or a queue is added or removed. With a list each key keeps its queue; a send to a
queue whose broker is down fails.
"""

import logging
from collections.abc import Iterable
from typing import Final

from gantrymq.client.core.errors import TRANSPORT_ERRORS
from gantrymq.client.core.instance import Instance
from gantrymq.protocol import calls
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers import topics as t

log = logging.getLogger(__name__)

NAMESPACE: Final = "ORDER_TOPIC_CONFIG"


async def fix_queues(
    instance: Instance, topic: str, brokers: Iterable[str], queues: int, *, others_stay: bool
) -> str:
    """Store the list in every name server that can be reached; returns it."""
    known = await _known(instance, topic) if others_stay else {}
    known |= dict.fromkeys(brokers, queues)
    value = ";".join(f"{name}:{count}" for name, count in sorted(known.items()))
    header = t.PutKvRequest(namespace=NAMESPACE, key=topic, value=value)
    for address in instance.namesrv_addresses:
        try:
            await instance.call(address, calls.PUT_KV_CONFIG, header)
        except TRANSPORT_ERRORS as error:
            log.warning("%s does not know the queues of order topic %s: %s", address, topic, error)
    if (await instance.routes.refresh(topic)).order_topic_conf != value:
        log.warning(
            "order topic %s is not strict yet: its name server does not hand the queue list out; "
            "set its orderMessageEnable=true",
            topic,
        )
    return value


async def _known(instance: Instance, topic: str) -> dict[str, int]:
    _, answer = await instance.call_namesrv(
        calls.GET_KV_CONFIG,
        t.KvRequest(namespace=NAMESPACE, key=topic),
        expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
    )
    pairs = (part.rpartition(":") for part in answer.ext.get("value", "").split(";"))
    return {name: int(count) for name, _, count in pairs if name and count.isdecimal()}


async def forget_queues(instance: Instance, topic: str) -> None:
    """Delete the list of a deleted topic."""
    header = t.KvRequest(namespace=NAMESPACE, key=topic)
    for address in instance.namesrv_addresses:
        try:
            await instance.call(address, calls.DELETE_KV_CONFIG, header)
        except TRANSPORT_ERRORS:
            continue
