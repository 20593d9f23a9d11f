"""What request codes need of policies."""

import json

import pytest

from gantrymq.access.policies import Resource
from gantrymq.access.policy_needs import BROKER_NEEDS
from gantrymq.access.rights import BROKER_RIGHTS
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.command import Command


def wishes(code: int, ext: dict[str, str], body: bytes = b"") -> list[str]:
    command = Command(code=code, ext=ext, body=body)
    found = BROKER_NEEDS[code].wishes(command, "DefaultCluster")
    return [f"{resource} {'|'.join(each.value for each in actions)}" for resource, actions in found]


@pytest.mark.parametrize(
    "code, ext, expected",
    [
        (Code.SEND_MESSAGE, {"topic": "T", "producerGroup": "g"}, ["Topic:T Pub"]),
        (Code.SEND_MESSAGE_V2, {"b": "%RETRY%g", "a": "other"}, ["Group:g Sub"]),
        (Code.SEND_BATCH_MESSAGE, {"b": "RMQ_SYS_STAGE_TOPIC"}, []),
        (Code.SEND_MESSAGE_V2, {"b": "RMQ_SYS_TRACE_TOPIC"}, ["Topic:RMQ_SYS_TRACE_TOPIC Pub"]),
        (Code.PULL_MESSAGE, {"topic": "%RETRY%g", "consumerGroup": "g"}, ["Group:g Sub"]),
        (Code.LITE_PULL_MESSAGE, {"topic": "T", "consumerGroup": "g"},
         ["Topic:T Sub", "Group:g Sub"]),
        (Code.POP_MESSAGE, {"topic": "T", "consumerGroup": "g"}, ["Group:g Sub", "Topic:T Sub"]),
        (Code.ACK_MESSAGE, {"topic": "%RETRY%g_T", "consumerGroup": "g"}, ["Group:g Sub"]),
        (Code.ACK_MESSAGE, {"topic": "%RETRY%h_T", "consumerGroup": "g"},
         ["Group:g Sub", "Group:h_T Sub"]),
        (Code.GET_CONSUME_STATS, {"consumerGroup": "g", "topicList": "T;U;"},
         ["Group:g Get", "Topic:T Get", "Topic:U Get"]),
        (Code.GET_CONSUME_STATS, {"consumerGroup": "g", "topic": ""}, ["Group:g Get"]),
        (Code.CLONE_GROUP_OFFSET, {"srcGroup": "a", "destGroup": "b", "topic": "T"},
         ["Group:b Update", "Topic:T Update"]),
        (Code.UPDATE_BROKER_CONFIG, {}, ["Cluster:DefaultCluster Update"]),
        (Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, ["Cluster:DefaultCluster Update"]),
        (Code.INTRODUCE_SLAVE, {}, ["Cluster:DefaultCluster Update"]),
        (Code.AUTH_LIST_USER, {}, ["Cluster:DefaultCluster Get"]),
        (Code.GET_BROKER_RUNTIME_INFO, {}, []),
        (Code.SEND_REPLY_MESSAGE_V2, {"b": "DefaultCluster_REPLY_TOPIC"}, []),
        (Code.SEND_REPLY_MESSAGE_V2, {"b": "T"}, ["Topic:T Pub"]),
    ],
)  # fmt: skip
def test_resources_and_actions_of_requests(
    code: Code, ext: dict[str, str], expected: list[str]
) -> None:
    """
    Those of RocketMQ 5.3.3, and the rows of access files where it asks nothing.
    """
    assert expected == wishes(code, ext)


def test_bodies_are_read_where_they_name_resources() -> None:
    """
    Heartbeats and locks as in 5.3.3, batches of acknowledgements as with access files.
    """
    consumer = {
        "groupName": "g",
        "subscriptionDataSet": [{"topic": "T", "subString": "*"}, {"topic": "%RETRY%g"}],
    }
    beat = json.dumps({"clientID": "c", "consumerDataSet": [consumer]}).encode()
    assert ["Group:g Sub", "Topic:T Sub"] == wishes(Code.HEART_BEAT, {}, beat)
    queues = [{"topic": topic, "brokerName": "b", "queueId": 0} for topic in ("T", "%RETRY%g")]
    lock = json.dumps({"consumerGroup": "g", "clientId": "c", "mqSet": queues}).encode()
    assert ["Group:g Sub", "Topic:T Sub"] == wishes(Code.LOCK_BATCH_MQ, {}, lock)


@pytest.mark.parametrize("code", BROKER_RIGHTS, ids=lambda code: Code(code).name)
def test_what_access_files_protect_is_protected(code: int) -> None:
    """
    A code that needs an admin, a topic or a group there needs some right here.
    """
    old, new = BROKER_RIGHTS[code], BROKER_NEEDS[code]
    if not (old.admin or old.fields or old.of_body):
        return
    names = {*old.fields, *new.fields}

    assert new.of_body is not None or wishes(code, dict.fromkeys(names, "x"))


def test_an_admins_right_is_no_right_to_one_thing_alone() -> None:
    """
    What only admins may do to the broker itself needs Update on its cluster.
    """
    admins = [code for code, need in BROKER_RIGHTS.items() if need.admin]
    cluster = Resource.parse("Cluster:DefaultCluster")
    named = {
        code
        for code in admins
        for resource, _ in BROKER_NEEDS[code].wishes(
            Command(code=code, ext=dict.fromkeys(BROKER_NEEDS[code].fields, "x")),
            "DefaultCluster",
        )
        if resource != cluster
    }

    assert {
        Code.UPDATE_AND_CREATE_TOPIC,
        Code.DELETE_TOPIC_IN_BROKER,
        Code.DELETE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
        Code.RESUME_CHECK_HALF_MESSAGE,
        Code.CHECK_HALF_MESSAGE,
    } == named
