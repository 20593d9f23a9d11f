"""What request codes need."""

import json
from typing import Any

import pytest

from gantrymq.access.accounts import Permission
from gantrymq.access.rights import BROKER_RIGHTS, NAME_SERVER_RIGHTS
from gantrymq.broker.routes import Handlers, broker_routes
from gantrymq.nameserver.handlers import NameServerHandlers
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.command import Command
from gantrymq.protocol.refusals import REFUSED

PUB, SUB, ANY = Permission.PUB, Permission.SUB, Permission.ANY


class Anything:
    """Has every method; nobody calls them."""

    def __getattr__(self, name: str) -> Any:
        return name


def routed(table: Any) -> set[int]:
    return {int(code) for code in (*table.hot, *table.slow)}


def test_every_code_of_a_broker_has_a_row() -> None:
    """
    A code that is routed and has none would be open to every key.
    """
    handlers = Handlers(**{name: Anything() for name in Handlers.__dataclass_fields__})  # type: ignore[arg-type]
    codes = routed(broker_routes(handlers)) - {int(code) for code in REFUSED}

    assert set() == codes - BROKER_RIGHTS.keys()


def test_every_code_of_a_name_server_has_a_row() -> None:
    """
    Both tables have exactly these codes.
    """
    handlers = NameServerHandlers(*[Anything() for _ in range(5)])  # type: ignore[arg-type]

    assert routed(handlers.routes()) == {int(code) for code in NAME_SERVER_RIGHTS}


@pytest.mark.parametrize(
    "code, ext, expected",
    [
        (Code.SEND_MESSAGE, {"topic": "T", "producerGroup": "g"}, [("T", PUB)]),
        (Code.SEND_MESSAGE_V2, {"b": "T", "a": "g"}, [("T", PUB)]),
        (Code.SEND_BATCH_MESSAGE, {"b": "T"}, [("T", PUB)]),
        (Code.SEND_MESSAGE_V2, {"b": "%RETRY%g", "a": "inner"}, [("%RETRY%g", SUB)]),
        (Code.SEND_MESSAGE_V2, {"b": "RMQ_SYS_TRACE_TOPIC"}, []),
        (Code.PULL_MESSAGE, {"topic": "RMQ_SYS_TRACE_TOPIC"}, [("RMQ_SYS_TRACE_TOPIC", SUB)]),
        (Code.CONSUMER_SEND_MSG_BACK, {"group": "g"}, [("%RETRY%g", SUB)]),
        (
            Code.PULL_MESSAGE,
            {"topic": "T", "consumerGroup": "g"},
            [("T", SUB), ("%RETRY%g", SUB)],
        ),
        (
            Code.PULL_MESSAGE,
            {"topic": "%RETRY%g_T", "consumerGroup": "g"},
            [("%RETRY%g_T", SUB), ("%RETRY%g", SUB)],
        ),
        (Code.ACK_MESSAGE, {"topic": "%RETRY%g_T", "consumerGroup": "g"}, [("%RETRY%g", SUB)]),
        (Code.ACK_MESSAGE, {"topic": "%RETRY%h_T", "consumerGroup": "g"},
         [("%RETRY%h_T", SUB), ("%RETRY%g", SUB)]),
        (Code.UNREGISTER_CLIENT, {"clientID": "c", "producerGroup": "p"}, []),
        (Code.GET_MAX_OFFSET, {"topic": "T"}, [("T", ANY)]),
        (Code.SEND_REPLY_MESSAGE_V2, {"b": "DefaultCluster_REPLY_TOPIC"}, []),
        (Code.SEND_REPLY_MESSAGE_V2, {"b": "T"}, [("T", PUB)]),
        (Code.END_TRANSACTION, {"producerGroup": "p"}, []),
        (Code.END_TRANSACTION, {"producerGroup": "p", "topic": "T"}, [("T", PUB)]),
    ],
)  # fmt: skip
def test_resources_of_requests(
    code: Code, ext: dict[str, str], expected: list[tuple[str, Permission]]
) -> None:
    """
    Topics and groups are taken from the fields that the handlers read.
    """
    assert expected == BROKER_RIGHTS[code].wanted(Command(code=code, ext=ext))


def test_a_heartbeat_is_about_all_groups_and_topics_it_names() -> None:
    """
    Producers are not asked for a right here: they need it when they send.
    """
    consumer = {"groupName": "g", "subscriptionDataSet": [{"topic": "T", "subString": "*"}]}
    beat = {"clientID": "c", "consumerDataSet": [consumer], "producerDataSet": [{"groupName": "p"}]}
    command = Command(code=Code.HEART_BEAT, body=json.dumps(beat).encode())

    assert [("%RETRY%g", SUB), ("T", SUB)] == BROKER_RIGHTS[Code.HEART_BEAT].wanted(command)


@pytest.mark.parametrize("code", [17, 25, 200, 207, 215, 50, 51, 53, 54])
def test_codes_of_admins(code: int) -> None:
    """
    Those of RocketMQ, and its access files, which it forgot.
    """
    assert BROKER_RIGHTS[code].admin
