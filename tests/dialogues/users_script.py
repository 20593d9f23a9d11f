"""Users, policies and requests that were put to a RocketMQ 5.3.3 broker with access control.

`CHANGES` are requests about users and ACLs, one after the other. `DECISIONS` are all users with all
other requests; each asks one thing that the policies of its user decide.
"""

import json
from typing import Any

from gantrymq.protocol.codes import RequestCode as Code

Request = dict[str, Any]
CLUSTER = "DefaultCluster"
HOME, AWAY, FAR = "127.0.0.1", "127.0.0.2", "127.0.0.9"


def entry(
    resource: str, actions: str, decision: str = "Allow", ips: list[str] | None = None
) -> Request:
    made: Request = {"resource": resource, "actions": actions.split(","), "decision": decision}
    return made | ({"sourceIps": ips} if ips else {})


def custom(*entries: Request) -> list[Request]:
    return [{"policyType": "Custom", "entries": list(entries)}]


USERS: dict[str, list[Request]] = {
    "nobody": [],
    "publisher": custom(entry("Topic:orders", "Pub")),
    "subscriber": custom(entry("Topic:orders", "Sub"), entry("Group:billing", "Sub")),
    "reader": custom(entry("Topic:orders", "Get"), entry("Group:billing", "Get")),
    "maker": custom(
        entry("Topic:orders*", "Create,Update,Delete"), entry("Group:bill*", "Update,Delete")
    ),
    "all-topics": custom(entry("Topic:*", "All")),
    "all-groups": custom(entry("Group:*", "All")),
    "all-but-one": custom(
        entry("Topic:*", "All"), entry("Group:*", "All"), entry("Topic:secrets", "All", "Deny")
    ),
    "anything": custom(entry("*", "All")),
    "anything-but": custom(entry("*", "All"), entry("Group:billing", "All", "Deny")),
    "long-prefix-denied": custom(
        entry("Topic:ord*", "All"), entry("Topic:orders*", "All", "Deny"), entry("Group:*", "All")
    ),
    "long-prefix-allowed": custom(
        entry("Topic:orders*", "All"), entry("Topic:ord*", "All", "Deny"), entry("Group:*", "All")
    ),
    "name-before-prefix": custom(
        entry("Topic:orders", "All"), entry("Topic:ord*", "All", "Deny"), entry("Group:*", "All")
    ),
    "prefix-then-name": custom(
        entry("Topic:ord*", "All", "Deny"), entry("Topic:orders", "All"), entry("Group:*", "All")
    ),
    "star-then-name": custom(
        entry("Topic:*", "All", "Deny"), entry("Topic:orders", "All"), entry("Group:*", "All")
    ),
    "by-default": [
        {
            "policyType": "Default",
            "entries": [entry("Topic:*", "Pub,Sub"), entry("Group:*", "Sub")],
        },
        {"policyType": "Custom", "entries": [entry("Topic:orders", "Pub", "Deny")]},
    ],
    "from-away": custom(entry("Topic:orders", "Pub,Sub", ips=[AWAY]), entry("Group:*", "Sub")),
    "from-network": custom(
        entry("Topic:orders", "Pub,Sub", ips=["127.0.0.0/30"]), entry("Group:*", "Sub")
    ),
    "not-from-away": custom(
        entry("Topic:orders", "All", "Deny", ips=[AWAY]), entry("Topic:*", "Pub")
    ),
    "cluster-reader": custom(entry(f"Cluster:{CLUSTER}", "Get")),
    "cluster-keeper": custom(entry("Cluster:*", "All")),
    "other-cluster": custom(entry("Cluster:Other", "All")),
}
"""Normal users, and their policies as CREATE_ACL takes them."""


def create_user(name: str, password: str | None = None, kind: str | None = "Normal") -> Request:
    body = {"username": name, "password": password or f"{name}-secret", "userType": kind}
    ext = {"username": name}
    return {"name": f"make user {name}", "code": Code.AUTH_CREATE_USER, "ext": ext,
            "body": json.dumps({k: v for k, v in body.items() if v is not None})}  # fmt: skip


def create_acl(name: str, policies: list[Request], code: int = Code.AUTH_CREATE_ACL) -> Request:
    body = {"subject": f"User:{name}", "policies": policies}
    return {"name": f"ACL of {name}", "code": code, "ext": {"subject": f"User:{name}"},
            "body": json.dumps(body)}  # fmt: skip


def get_user(name: str) -> Request:
    return {"name": f"get {name}", "code": Code.AUTH_GET_USER, "ext": {"username": name}}


def get_acl(subject: str) -> Request:
    return {"name": f"get {subject}", "code": Code.AUTH_GET_ACL, "ext": {"subject": subject}}


def update_user(name: str, **fields: str) -> Request:
    return {"name": f"change {name}: {fields}", "code": Code.AUTH_UPDATE_USER,
            "ext": {"username": name}, "body": json.dumps(fields)}  # fmt: skip


def delete_user(name: str) -> Request:
    return {"name": f"delete {name}", "code": Code.AUTH_DELETE_USER, "ext": {"username": name}}


def delete_acl(subject: str, **fields: str) -> Request:
    return {"name": f"delete ACL {subject} {fields}", "code": Code.AUTH_DELETE_ACL,
            "ext": {"subject": subject, **fields}}  # fmt: skip


def list_users(**fields: str) -> Request:
    return {"name": f"list users {fields}", "code": Code.AUTH_LIST_USER, "ext": fields}


def list_acls(**fields: str) -> Request:
    return {"name": f"list ACLs {fields}", "code": Code.AUTH_LIST_ACL, "ext": fields}


def as_user(user: str | None, request: Request, **more: Any) -> Request:
    return {**request, "user": user, **more}


def _acl_with(**fields: Any) -> Request:
    made = {**entry("Topic:orders", "Pub"), **fields}
    kept = {name: value for name, value in made.items() if value is not None}
    return {**create_acl("publisher", custom(kept)), "name": f"ACL with {fields}"}


CHANGES: list[Request] = [
    *(create_user(name) for name in USERS),
    *(create_acl(name, policies) for name, policies in USERS.items() if policies),
    get_user("root"),
    get_user("publisher"),
    get_user("stranger"),
    get_user(""),
    get_acl("User:publisher"),
    get_acl("User:by-default"),
    get_acl("User:from-away"),
    get_acl("User:nobody"),
    get_acl("User:stranger"),
    create_user("publisher"),
    create_user("plain", kind=None),
    get_user("plain"),
    create_user("odd", kind="Odd"),
    get_user("odd"),
    {**create_user("no-password"), "body": '{"username":"no-password"}', "name": "no password"},
    {**create_user(""), "name": "no name"},
    create_user("second-root", kind="Super"),
    create_user("short-lived", kind="super"),
    get_user("short-lived"),
    as_user("short-lived", list_users(filter="short")),
    update_user("short-lived", userStatus="disable"),
    get_user("short-lived"),
    as_user("short-lived", list_users(filter="short")),
    update_user("short-lived", userStatus="ENABLE", userType="normal"),
    get_user("short-lived"),
    update_user("short-lived", password="short-lived-second"),
    as_user("short-lived", get_user("short-lived"), secret="short-lived-second"),
    as_user("short-lived", get_user("short-lived")),
    update_user("stranger", password="x"),
    as_user("cluster-keeper", create_user("by-keeper")),
    as_user("cluster-keeper", create_user("super-by-keeper", kind="Super")),
    as_user("cluster-keeper", update_user("by-keeper", userType="Super")),
    as_user("cluster-keeper", update_user("second-root", password="taken-over")),
    as_user("cluster-keeper", delete_user("second-root")),
    as_user("cluster-keeper", get_user("publisher")),
    as_user("cluster-reader", get_user("publisher")),
    as_user("cluster-reader", create_user("by-reader")),
    as_user("publisher", get_user("publisher")),
    as_user("other-cluster", list_users()),
    create_acl("by-keeper", custom(entry("Topic:orders", "Pub"), entry("Topic:prices", "Sub"))),
    create_acl("by-keeper", custom(entry("Topic:orders", "Sub", "Deny", [AWAY]))),
    get_acl("User:by-keeper"),
    create_acl(
        "by-keeper", custom(entry("Group:billing", "Sub")), Code.AUTH_UPDATE_ACL
    ),
    create_acl(
        "by-keeper",
        [{"policyType": "Default", "entries": [entry("Topic:*", "Pub")]}],
        Code.AUTH_UPDATE_ACL,
    ),
    get_acl("User:by-keeper"),
    delete_acl("User:by-keeper", resource="Topic:prices"),
    delete_acl("User:by-keeper", resource="Topic:unknown"),
    get_acl("User:by-keeper"),
    delete_acl("User:by-keeper", policyType="Default", resource="Topic:*"),
    get_acl("User:by-keeper"),
    list_acls(subjectFilter="keeper"),
    list_acls(resourceFilter="prices"),
    list_acls(subjectFilter="by", resourceFilter="Group"),
    list_acls(subjectFilter="nothing-like-it"),
    list_users(filter="keeper"),
    list_users(filter="nothing-like-it"),
    delete_acl("User:by-keeper"),
    get_acl("User:by-keeper"),
    delete_acl("User:by-keeper"),
    delete_acl("User:stranger"),
    delete_user("by-keeper"),
    delete_user("by-keeper"),
    delete_user(""),
    get_user("by-keeper"),
    create_acl("stranger", custom(entry("Topic:orders", "Pub"))),
    {**create_acl("publisher", []), "name": "ACL without policies"},
    {**create_acl("publisher", custom()), "name": "ACL without entries"},
    {**create_acl("publisher", custom(entry("Topic:orders", "Pub"))),
     "ext": {"subject": "Robot:r2"}, "body": '{"policies":[]}', "name": "another subject"},
    {**create_acl("publisher", []), "body": "", "name": "ACL without a body"},
    _acl_with(resource="Nothing:orders"),
    _acl_with(resource=None),
    _acl_with(resource="orders"),
    _acl_with(actions=["Fly"]),
    _acl_with(actions=[]),
    _acl_with(actions=["Any"]),
    _acl_with(actions=["Pub", "Fly"]),
    _acl_with(decision="Maybe"),
    _acl_with(decision=None),
    _acl_with(sourceIps=["300.1.1.1"]),
    _acl_with(sourceIps=[" "]),
    _acl_with(sourceIps=["10.0.0.0/33"]),
    _acl_with(sourceIps=["10.0.0.7/8", "::1"]),
    get_acl("User:publisher"),
    create_acl("publisher", custom(entry("topic:orders", "pub", "allow"))),
    get_acl("User:publisher"),
    create_user("disabled"),
    create_acl("disabled", custom(entry("Topic:*", "All"))),
    update_user("disabled", userStatus="disable"),
]  # fmt: skip
"""Requests about users and ACLs, by the super user unless another is named."""


def _ask(name: str, code: int, body: str = "", **ext: str) -> Request:
    made = {"name": name, "code": int(code), "ext": ext}
    return {**made, "body": body} if body else made


def _send(topic: str, code: int = Code.SEND_MESSAGE) -> Request:
    return _ask(
        f"send to {topic}", code, "x", producerGroup="p", topic=topic, defaultTopic="TBW102",
        defaultTopicQueueNums="1", queueId="0", sysFlag="0", bornTimestamp="0", flag="0",
    )  # fmt: skip


def _send_v2(topic: str, group: str = "p", code: int = Code.SEND_MESSAGE_V2) -> Request:
    name = f"{Code(code).name} to {topic} as {group}"
    return _ask(name, code, "x", a=group, b=topic, c="TBW102", d="1", e="0", f="0", g="0", h="0")


def _pull(topic: str, group: str, code: int = Code.PULL_MESSAGE) -> Request:
    return _ask(
        f"{Code(code).name} {topic} as {group}", code, consumerGroup=group, topic=topic,
        queueId="0", queueOffset="0", maxMsgNums="1", sysFlag="0", commitOffset="0",
        suspendTimeoutMillis="0", subVersion="0", subscription="*", expressionType="TAG",
    )  # fmt: skip


def _heartbeat(group: str, topic: str) -> Request:
    data = {"clientID": "c", "consumerDataSet": [{
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False,
        "subscriptionDataSet": [{"topic": topic, "subString": "*"}]}],
        "producerDataSet": []}  # fmt: skip
    return _ask(f"heartbeat of {group} on {topic}", Code.HEART_BEAT, json.dumps(data))


def _lock(code: int, group: str, topic: str) -> Request:
    queue = {"topic": topic, "brokerName": "broker-a", "queueId": 0}
    data = {"consumerGroup": group, "clientId": "c", "mqSet": [queue]}
    return _ask(f"{Code(code).name} {topic} as {group}", code, json.dumps(data))


def _of_queue(code: int, topic: str, **more: str) -> Request:
    name = " ".join([Code(code).name, topic, *more.values()])
    return _ask(name, code, topic=topic, queueId="0", **more)


QUESTIONS: list[Request] = [
    _send("orders"),
    _send("secrets"),
    _send("%RETRY%billing"),
    _send_v2("orders"),
    _send_v2("orders-eu"),
    _send_v2("%RETRY%billing"),
    _send_v2("%RETRY%others", "billing"),
    _send_v2("prices", code=Code.SEND_BATCH_MESSAGE),
    _pull("orders", "billing"),
    _pull("orders", "others"),
    _pull("secrets", "billing"),
    _pull("%RETRY%billing", "billing"),
    _pull("orders", "billing", Code.LITE_PULL_MESSAGE),
    _heartbeat("billing", "orders"),
    _heartbeat("billing", "secrets"),
    _lock(Code.LOCK_BATCH_MQ, "billing", "orders"),
    _lock(Code.UNLOCK_BATCH_MQ, "others", "orders"),
    _of_queue(Code.QUERY_CONSUMER_OFFSET, "orders", consumerGroup="billing"),
    _of_queue(Code.UPDATE_CONSUMER_OFFSET, "orders", consumerGroup="billing", commitOffset="0"),
    _of_queue(Code.GET_MAX_OFFSET, "orders"),
    _of_queue(Code.GET_MIN_OFFSET, "secrets"),
    _of_queue(Code.SEARCH_OFFSET_BY_TIMESTAMP, "orders", timestamp="0"),
    _of_queue(Code.GET_EARLIEST_MSG_STORETIME, "orders"),
    _ask("query orders", Code.QUERY_MESSAGE, topic="orders", key="k", maxNum="1",
         beginTimestamp="0", endTimestamp="1"),
    _ask("leave billing", Code.UNREGISTER_CLIENT, clientID="c", consumerGroup="billing"),
    _ask("leave as a producer", Code.UNREGISTER_CLIENT, clientID="c", producerGroup="p"),
    _ask("members of billing", Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="billing"),
    _ask("connections of billing", Code.GET_CONSUMER_CONNECTION_LIST, consumerGroup="billing"),
    _ask("connections of p", Code.GET_PRODUCER_CONNECTION_LIST, producerGroup="p"),
    _ask("make orders", Code.UPDATE_AND_CREATE_TOPIC, topic="orders", defaultTopic="TBW102",
         readQueueNums="1", writeQueueNums="1", perm="6", topicFilterType="SINGLE_TAG",
         topicSysFlag="0", order="false"),
    _ask("delete orders-gone", Code.DELETE_TOPIC_IN_BROKER, topic="orders-gone"),
    _ask("delete group bill-gone", Code.DELETE_SUBSCRIPTIONGROUP, groupName="bill-gone"),
    _ask("make group", Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, '{"groupName":"bill-new"}'),
    _ask("topics", Code.GET_ALL_TOPIC_CONFIG),
    _ask("settings of orders", Code.GET_TOPIC_CONFIG, topic="orders", lo="true"),
    _ask("figures of orders", Code.GET_TOPIC_STATS_INFO, topic="orders"),
    _ask("who consumes orders", Code.QUERY_TOPIC_CONSUME_BY_WHO, topic="orders"),
    _ask("settings of billing", Code.GET_SUBSCRIPTIONGROUP_CONFIG, group="billing"),
    _ask("progress of billing", Code.GET_CONSUME_STATS, consumerGroup="billing", topic="orders"),
    _ask("reset billing", Code.INVOKE_BROKER_TO_RESET_OFFSET, topic="orders", group="billing",
         timestamp="-1", isForce="true"),
    _ask("clone billing", Code.CLONE_GROUP_OFFSET, srcGroup="billing", destGroup="billing2",
         topic="orders"),
    _ask("settings of the broker", Code.GET_BROKER_CONFIG),
    _ask("change a setting", Code.UPDATE_BROKER_CONFIG, "regionId=DefaultRegion\n"),
    _ask("figures of the broker", Code.GET_BROKER_RUNTIME_INFO),
    _ask("a statistic", Code.VIEW_BROKER_STATS_DATA, statsName="TOPIC_PUT_NUMS",
         statsKey="orders"),
    _ask("an unknown code", 9999, topic="orders"),
    _ask("list users", Code.AUTH_LIST_USER, filter="nobody"),
    _ask("read at 0", Code.VIEW_MESSAGE_BY_ID, topic="orders", offset="0"),
    _ask("send back", Code.CONSUMER_SEND_MSG_BACK, offset="0", group="billing", delayLevel="0",
         originMsgId="m", originTopic="orders"),
    _ask("end a transaction", Code.END_TRANSACTION, producerGroup="p", topic="secrets",
         tranStateTableOffset="0", commitLogOffset="0", commitOrRollback="12"),
    _ask("recall", Code.RECALL_MESSAGE, producerGroup="p", topic="orders", recallHandle="h"),
    _of_queue(Code.POP_MESSAGE, "orders", consumerGroup="billing", maxMsgNums="1",
              invisibleTime="1000", pollTime="0", bornTime="0", initMode="0"),
    _of_queue(Code.PEEK_MESSAGE, "orders", consumerGroup="billing", maxMsgNums="1"),
    _of_queue(Code.ACK_MESSAGE, "orders", consumerGroup="billing", extraInfo="x", offset="0"),
    _of_queue(Code.CHANGE_MESSAGE_INVISIBLETIME, "orders", consumerGroup="others", extraInfo="x",
              offset="0", invisibleTime="1000"),
    _of_queue(Code.NOTIFICATION, "orders", consumerGroup="billing", pollTime="0", bornTime="0"),
    _of_queue(Code.POLLING_INFO, "orders", consumerGroup="billing"),
    _of_queue(Code.QUERY_CONSUME_QUEUE, "orders", consumerGroup="billing", index="0", count="1"),
    _ask("topics of billing", Code.QUERY_TOPICS_BY_CONSUMER, group="billing"),
    _ask("subscription of billing", Code.QUERY_SUBSCRIPTION_BY_CONSUMER, group="billing",
         topic="orders"),
    _ask("time span", Code.QUERY_CONSUME_TIME_SPAN, group="billing", topic="orders"),
    _ask("corrections", Code.QUERY_CORRECTION_OFFSET, filterGroups="billing,others",
         compareGroup="billing", topic="orders"),
    _ask("running info", Code.GET_CONSUMER_RUNNING_INFO, consumerGroup="billing", clientId="c",
         jstackEnable="false"),
    _ask("status of members", Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, topic="orders",
         group="others"),
    _ask("forbid billing", Code.UPDATE_AND_GET_GROUP_FORBIDDEN, group="billing", topic="orders",
         readable="true"),
    _ask("check again", Code.RESUME_CHECK_HALF_MESSAGE, topic="orders", msgId="m"),
    _ask("all producers", Code.GET_ALL_PRODUCER_INFO),
    _ask("progress of all", Code.GET_BROKER_CONSUME_STATS, isOrder="false"),
    _ask("groups", Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
    _ask("settings of all modes", Code.GET_ALL_MESSAGE_REQUEST_MODE),
    _ask("progress as slaves have it", Code.GET_ALL_CONSUMER_OFFSET),
]  # fmt: skip
"""What every user asks."""

DECISIONS: list[Request] = [
    *(as_user(user, each, source=HOME) for user in (*USERS, "root") for each in QUESTIONS),
    *(
        as_user(user, each, source=source)
        for user in ("from-away", "from-network", "not-from-away")
        for source in (AWAY, FAR)
        for each in QUESTIONS[:11]
    ),
    *(as_user("disabled", each, source=HOME) for each in QUESTIONS[:11]),
    *(as_user("stranger", each, source=HOME) for each in QUESTIONS[:11]),
    *(as_user(None, each, source=HOME) for each in QUESTIONS),
    *(as_user("root", each, source=HOME, secret="wrong") for each in QUESTIONS[:11]),
    *(as_user("inner", each, source=HOME) for each in QUESTIONS[:3]),
]
"""Every question of every user, and some from other addresses or with wrong keys."""

TOPICS = ("orders", "orders-eu", "secrets", "prices")
GROUPS = ("billing", "others")
SETTINGS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": (
        "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorizationMetadataProvider": (
        "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "initAuthenticationUser": '{"username":"root","password":"root-secret"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-secret"}',
    "timerWheelEnable": "true",
}
