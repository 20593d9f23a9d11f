"""The append of a message that came from a client."""

from gantrymq.protocol.command import Command
from gantrymq.protocol.record import BORN_V6
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append


class SendAppend(Append, kw_only=True, eq=False):
    """An append that came from a client, with the connection and the request to answer."""

    connection: Connection
    command: Command
    echo_queue_id: int
    """The queue the answer names: the one asked for, also when the record lies elsewhere."""
    uniq_key: str = ""
    held: tuple[str, int, str] | None = None
    """Of half a transaction: the topic and queue it is meant for, and who decides."""


def received(
    connection: Connection,
    command: Command,
    topic: str,
    queue_id: int,
    flag: int,
    sys_flag: int,
    born_ms: int,
    reconsume_times: int,
    properties: bytes = b"",
) -> SendAppend:
    """The append of a request."""
    host = connection.peer_host
    return SendAppend(
        topic,
        queue_id,
        command.body,
        properties,
        flag,
        sys_flag if len(host) == 8 else sys_flag | BORN_V6,
        born_ms,
        host,
        reconsume_times,
        connection=connection,
        command=command,
        echo_queue_id=queue_id,
    )
