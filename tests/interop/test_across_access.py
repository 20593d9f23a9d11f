"""Foreign clients and tools with access keys: access files of 4.9, users of 5.3."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import toolchain
from click.testing import CliRunner
from clients import Client, GoClient, JavaClient, Lines, NodeClient
from clusters import SETTINGS
from process import ProcessFailed
from real import OurCluster, RealCluster

from gantrymq.access.credentials import Credentials
from gantrymq.cli.main import main as gantry
from gantrymq.cli.mqadmin.main import run as our_mqadmin
from gantrymq.client.core.options import ClientOptions
from gantrymq.sync import Admin

TOPIC, CLOSED, GROUP = "keys_topic", "keys_closed", "keys_group"
RULES = f"""\
globalWhiteRemoteAddresses: []
accounts:
  - accessKey: operator
    secretKey: operator-secret
    admin: true
  - accessKey: shop-app
    secretKey: shop-secret
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms:
      - {TOPIC}=PUB|SUB
    groupPerms:
      - {GROUP}_0=SUB
      - {GROUP}_1=SUB
      - {GROUP}_2=SUB
      - {GROUP}_3=SUB
"""
OPERATOR = {"accessKey": "operator", "secretKey": "operator-secret"}
SHOP = {"accessKey": "shop-app", "secretKey": "shop-secret"}
WRONG = {"accessKey": "shop-app", "secretKey": "wrong-secret"}
NO_KEY: dict[str, str] = {}
CLIENTS: list[Client] = [JavaClient("4.9.8"), JavaClient("5.3.3"), GoClient(), NodeClient()]
TOOLS_SECONDS_MAX = 60
SECONDS_MAX = 180
"""Go's client looks for its retry topic every 20 s."""
RELOADS_MAX = 5


@pytest.fixture(scope="module", params=["ours", "4.9.7"])
def guarded(request: pytest.FixtureRequest, programs: None) -> Iterator[OurCluster | RealCluster]:
    """A broker with access control, and two topics."""
    cluster: Any
    if request.param == "ours":
        cluster = OurCluster()
        file = cluster.directory / "plain_acl.yml"
        cluster._settings = {**SETTINGS, "aclEnable": "true", "aclFile": str(file)}
    else:
        cluster = RealCluster(request.param, settings={**SETTINGS, "aclEnable": "true"})
        file = cluster.directory / "conf" / "plain_acl.yml"
        file.parent.mkdir()
    file.write_text(RULES)
    with cluster:
        client = ClientOptions(credentials=Credentials("operator", "operator-secret"))
        with Admin(cluster.namesrv, client=client) as admin:
            for topic in (TOPIC, CLOSED):
                admin.create_topic(topic, queues=1)
        yield cluster


@pytest.mark.timeout(2 * SECONDS_MAX)
@pytest.mark.parametrize("client", CLIENTS, ids=repr)
def test_a_client_with_its_key_sends_and_consumes(
    client: Client, guarded: OurCluster | RealCluster
) -> None:
    """
    Also a message that it sends back once, which comes again from the retry topic.
    """
    place = {"namesrv": guarded.namesrv, "topic": TOPIC, **SHOP}
    # Node's client finds its retry topic too late for a test, on RocketMQ's brokers as on ours.
    failures = 0 if isinstance(client, NodeClient) else 1
    sent = client.run("send-sync", body=repr(client), **place).sent
    found = client.run(
        "consume-concurrently",
        group=f"{GROUP}_{CLIENTS.index(client)}",
        expected=1,
        failures=failures,
        retryLevel=1,
        timeout=SECONDS_MAX,
        **place,
    )

    assert 1 == len(sent)
    assert 1 <= len(found.messages)


@pytest.mark.parametrize("client", CLIENTS, ids=repr)
@pytest.mark.parametrize("keys", [WRONG, NO_KEY], ids=["wrong", "none"])
def test_a_client_without_its_key_is_refused(
    client: Client, keys: dict[str, str], guarded: OurCluster | RealCluster
) -> None:
    """
    The send fails, and nothing is stored.
    """
    before = _end_of(guarded, TOPIC)
    with pytest.raises(ProcessFailed):
        client.run("send-sync", namesrv=guarded.namesrv, topic=TOPIC, timeout=10, **keys)

    assert before == _end_of(guarded, TOPIC)


@pytest.mark.parametrize("client", CLIENTS, ids=repr)
def test_a_key_without_the_right_is_refused(
    client: Client, guarded: OurCluster | RealCluster
) -> None:
    """
    The key is known, and the topic is not among its rules.
    """
    with pytest.raises(ProcessFailed):
        client.run("send-sync", namesrv=guarded.namesrv, topic=CLOSED, timeout=10, **SHOP)

    assert 0 == _end_of(guarded, CLOSED)


def _end_of(cluster: OurCluster | RealCluster, topic: str) -> int:
    client = ClientOptions(credentials=Credentials("operator", "operator-secret"))
    with Admin(cluster.namesrv, client=client) as admin:
        return sum(each.max_offset for each in admin.topic_stats(topic).values())


@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
def test_rocketmqs_tool_reads_its_key_from_tools_yml(
    version: str, guarded: OurCluster | RealCluster, tmp_path: Path
) -> None:
    """
    With an admin's key it makes a topic, without one it is refused.
    """
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "logback_tools.xml").write_text("<configuration/>")
    words = ["updateTopic", "-b", guarded.broker_addr, "-t", f"by_{version.replace('.', '_')}"]

    assert "No accessKey is configured" in _tool(version, tmp_path, guarded.namesrv, words)
    (conf / "tools.yml").write_text("accessKey: operator\nsecretKey: operator-secret\n")
    assert "create topic to" in _tool(version, tmp_path, guarded.namesrv, words)


def _tool(version: str, home: Path, namesrv: str, words: list[str]) -> str:
    command = [
        "java", "-Xmx128m", "-XX:TieredStopAtLevel=1", f"-Drocketmq.home.dir={home}",
        f"-Duser.home={home}", "-cp", toolchain.java_class_path(toolchain.JAVA_CLIENTS[version]),
        "org.apache.rocketmq.tools.command.MQAdminStartup", *words, "-n", namesrv,
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TOOLS_SECONDS_MAX, check=False,
        env={**os.environ, "ROCKETMQ_HOME": str(home)},
    )  # fmt: skip
    return done.stdout + done.stderr


def test_our_tool_explains_what_an_account_may(
    guarded: OurCluster | RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    By the rules that the broker tells; both decide the same.
    """
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "operator")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "operator-secret")

    assert ("Allow", "topicPerms: PUB|SUB") == _explained(guarded, "shop-app", f"Topic:{TOPIC}")
    assert ("Deny", "defaultTopicPerm: DENY") == _explained(guarded, "shop-app", f"Topic:{CLOSED}")
    assert ("Allow", "admin") == _explained(guarded, "operator", f"Topic:{CLOSED}")


def _explained(cluster: OurCluster | RealCluster, user: str, resource: str) -> tuple[str, str]:
    words = ["acl", "explain", user, "Pub", resource, "-n", cluster.namesrv, "-o", "json"]
    done = CliRunner().invoke(gantry, words)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    return row["decision"], row["rule"]


def test_both_tools_change_accounts(
    guarded: OurCluster | RealCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[str], str],
) -> None:
    """
    RocketMQ's mqadmin and ours, and the account is in force.
    """
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "logback_tools.xml").write_text("<configuration/>")
    (conf / "tools.yml").write_text("accessKey: operator\nsecretKey: operator-secret\n")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    for name, tool in (("theirs", _their_change), ("ours", _our_change)):
        key = fresh(f"account_{name}")
        words = ["updateAclConfig", "-b", guarded.broker_addr, "-a", key, "-s", "12345678",
                 "-t", f"{TOPIC}=PUB"]  # fmt: skip
        tool(tmp_path, guarded.namesrv, words)
        assert 1 == len(_sent_with(key, guarded).sent)


def _sent_with(key: str, guarded: OurCluster | RealCluster) -> Lines:
    """What a client with a new key sends.

    RocketMQ sees its changed file half a second later, and forgets all keys while it reads it.
    """
    place = {"namesrv": guarded.namesrv, "topic": TOPIC}
    java = JavaClient("4.9.8")
    for _ in range(RELOADS_MAX if isinstance(guarded, RealCluster) else 0):
        time.sleep(2)
        with contextlib.suppress(ProcessFailed):
            return java.run("send-sync", accessKey=key, secretKey="12345678", **place)
    return java.run("send-sync", accessKey=key, secretKey="12345678", **place)


def _their_change(home: Path, namesrv: str, words: list[str]) -> None:
    assert "create or update plain access config to" in _tool("4.9.8", home, namesrv, words)


def _our_change(home: Path, namesrv: str, words: list[str]) -> None:
    assert 0 == our_mqadmin([*words, "-n", namesrv])


# users and policies of 5.3

USER, USER_SECRET = "shop-user", "shop-user-secret"
BY_USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"operator","password":"operator-secret"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-secret"}',
    # RocketMQ keeps no users without these.
    "authenticationMetadataProvider": (
        "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorizationMetadataProvider": (
        "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
}


@pytest.fixture(scope="module", params=["ours", "5.3.3"])
def by_users(
    request: pytest.FixtureRequest, programs: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[OurCluster | RealCluster, Path]]:
    """A broker with users, which RocketMQ's own tool makes, and the home of that tool."""
    home = tmp_path_factory.mktemp("tools")
    (home / "conf").mkdir()
    (home / "conf" / "logback_tools.xml").write_text("<configuration/>")
    (home / "conf" / "tools.yml").write_text("accessKey: operator\nsecretKey: operator-secret\n")
    settings = {**SETTINGS, **BY_USERS}
    cluster: Any = (
        OurCluster(settings=settings)
        if request.param == "ours"
        else RealCluster(request.param, settings=settings)
    )
    with cluster:
        place = ["-b", cluster.broker_addr]
        subject = ["-s", f"User:{USER}"]
        rights = ["-a", "Pub,Sub", "-d", "Allow"]
        for words, said in (
            (["updateTopic", *place, "-t", TOPIC, "-r", "1", "-w", "1"], "create topic to"),
            (["updateTopic", *place, "-t", CLOSED, "-r", "1", "-w", "1"], "create topic to"),
            (["createUser", *place, "-u", USER, "-p", USER_SECRET], "create user to"),
            (["createAcl", *place, *subject, "-r", f"Topic:{TOPIC}", *rights], "create acl to"),
            (["createAcl", *place, *subject, "-r", f"Group:{GROUP}*", *rights], "create acl to"),
        ):
            assert said in _tool("5.3.3", home, cluster.namesrv, words)
        yield cluster, home


@pytest.mark.parametrize("client", CLIENTS, ids=repr)
def test_a_client_of_a_user_is_served_and_refused(
    client: Client, by_users: tuple[OurCluster | RealCluster, Path]
) -> None:
    """
    It sends and consumes where the policies allow; a closed topic and a wrong password fail.
    """
    cluster, _ = by_users
    place = {"namesrv": cluster.namesrv, "accessKey": USER, "secretKey": USER_SECRET}
    assert 1 == len(client.run("send-sync", topic=TOPIC, body=repr(client), **place).sent)
    group = f"{GROUP}_{CLIENTS.index(client)}"
    found = client.run("consume-concurrently", topic=TOPIC, group=group, expected=1, **place)
    assert found.messages
    for topic, secret in ((CLOSED, USER_SECRET), (TOPIC, "wrong-secret")):
        with pytest.raises(ProcessFailed):
            client.run("send-sync", **{**place, "topic": topic, "secretKey": secret, "timeout": 10})


def test_our_tool_explains_what_a_user_may(
    by_users: tuple[OurCluster | RealCluster, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    By the policies that the broker tells.
    """
    cluster, _ = by_users
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "operator")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "operator-secret")
    allowed = "Allow", f"Custom: Allow Pub,Sub on Topic:{TOPIC}"

    assert allowed == _explained(cluster, USER, f"Topic:{TOPIC}")
    assert ("Deny", "no entry") == _explained(cluster, USER, f"Topic:{CLOSED}")
    assert ("Allow", "userType Super") == _explained(cluster, "inner", f"Topic:{CLOSED}")


def test_rocketmqs_tool_reads_and_changes_users(
    by_users: tuple[OurCluster | RealCluster, Path],
) -> None:
    """
    What 5.3.3's mqadmin prints about users and policies is the same on both brokers.
    """
    cluster, home = by_users
    place = ["-b", cluster.broker_addr]

    def said(*words: str) -> str:
        return " ".join(_tool("5.3.3", home, cluster.namesrv, [*words, *place]).split())

    assert f"{USER} {USER_SECRET} Normal enable" in said("listUser", "-f", "shop")
    assert f"User:{USER} Custom Topic:{TOPIC} [Pub, Sub] null Allow" in said("listAcl", "-s", USER)
    subject = ["-s", f"User:{USER}"]
    assert "delete acl to" in said("deleteAcl", *subject, "-r", f"Topic:{TOPIC}")
    shown = said("getAcl", *subject)
    assert f"User:{USER} Custom Group:{GROUP}* [Pub, Sub] null Allow" in shown
    assert f"Topic:{TOPIC}" not in shown
    assert "update user to" in said("updateUser", "-u", USER, "-s", "disable")
    assert f"{USER} {USER_SECRET} Normal disable" in said("getUser", "-u", USER)
    assert "delete user to" in said("deleteUser", "-u", USER)
    assert "The subject is not exist." in said("getAcl", *subject)
