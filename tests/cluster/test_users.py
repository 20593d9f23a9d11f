"""Users and policies of RocketMQ 5.3 over real sockets: who is served, who is refused, and why."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from groups import in_group, lose_leader

from gantrymq import Message
from gantrymq.access.credentials import Credentials
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.network import TcpNetwork
from gantrymq.cli.main import main as gantry
from gantrymq.cli.mqadmin.main import run as mqadmin
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.doctor.checks import examine
from gantrymq.client.admin.doctor.collect import take_snapshot
from gantrymq.client.core.errors import BrokerRefused, SendFailed
from gantrymq.client.core.options import ClientOptions
from gantrymq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.threaded import GantryCluster

ROOT, INNER = Credentials("root", "root-secret"), Credentials("inner", "inner-secret")
SHOP, STRANGER = Credentials("shop", "shop-secret"), Credentials("stranger", "x")
SETTINGS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": '{"username":"root","password":"root-secret"}',
    "inner_client_authentication_credentials": '{"accessKey":"inner","secretKey":"inner-secret"}',
}
SECONDS_MAX = 30


def allow(resource: str, *actions: str, decision: str = "Allow") -> PolicyEntryInfo:
    return PolicyEntryInfo(resource=resource, actions=list(actions), decision=decision)


def acl(*entries: PolicyEntryInfo, user: str = "shop", kind: str | None = None) -> AclInfo:
    return AclInfo(
        subject=f"User:{user}", policies=[PolicyInfo(policy_type=kind, entries=[*entries])]
    )


def signed(credentials: Credentials | None) -> ClientOptions:
    return ClientOptions(credentials=credentials)


def address(cluster: Cluster, name: str = "broker-a") -> str:
    return f"127.0.0.1:{cluster.config_of(name).listen_port}"


def with_users(work: Callable[[Cluster], Awaitable[None]], **options: Any) -> None:
    """Run against a broker with a normal user, who may use `orders` as the group `billing`."""

    async def main() -> None:
        async with asyncio.timeout(SECONDS_MAX), Cluster(**{**SETTINGS, **options}) as cluster:
            async with cluster.admin(client=signed(ROOT)) as admin:
                for topic in ("orders", "prices", "secrets"):
                    await admin.create_topic(topic, queues=1)
                place = address(cluster)
                await admin.create_user(place, UserInfo(username="shop", password="shop-secret"))
                rules = allow("Topic:orders", "Pub", "Sub"), allow("Group:billing", "Sub")
                await admin.create_acl(place, acl(*rules))
            await work(cluster)

    asyncio.run(main())


async def send(cluster: Cluster, credentials: Credentials | None, topic: str = "orders") -> str:
    """The status of a send, or the words of its refusal."""
    async with cluster.producer(client=signed(credentials)) as producer:
        try:
            return str((await producer.send(Message(topic, b"x"))).status)
        except SendFailed as failed:
            return str(failed).partition("answered code ")[2]


async def ask(cluster: Cluster, code: int, ext: dict[str, str] | None = None) -> Command:
    """An unsigned request."""
    port = cluster.config_of("broker-a").listen_port
    connection = await TcpNetwork().connect("127.0.0.1", port, Connection, 3)
    try:
        return await connection.call(Command(code=code, ext=ext or {}), 3)
    finally:
        connection.close()


def test_a_user_sends_where_its_policies_allow() -> None:
    """
    Right password and policy: stored. Otherwise code 16, and the words of RocketMQ 5.3.
    """

    async def work(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, SHOP)
        assert "SEND_OK" == await send(cluster, ROOT, "secrets")
        wrong = Credentials("shop", "wrong-secret")
        assert "16: check signature failed." == await send(cluster, wrong)
        assert "16: username cannot be null." == await send(cluster, None)
        assert "16: User:stranger is not found." == await send(cluster, STRANGER)
        assert (
            "16: User:shop has no permission to access Topic:prices from 127.0.0.1, "
            "no matched policies." == await send(cluster, SHOP, "prices")
        )

    with_users(work)


def test_a_group_consumes_and_retries_where_it_may() -> None:
    """
    Heartbeat, pulls, progress, send-back and the retry topic need Sub for group and topic alone.
    """

    async def work(cluster: Cluster) -> None:
        client, seen = signed(SHOP), []
        async with (
            cluster.producer(client=client) as producer,
            cluster.consumer("billing", client=client, start="first") as consumer,
        ):
            consumer.subscribe("orders")
            await producer.send(Message("orders", b"pay"))
            async for message in consumer:
                seen.append(message.reconsume_times)
                if seen == [0]:
                    await message.retry(delay_level=1)
                else:
                    await message.ack()
                    break
        assert [0, 1] == seen

    with_users(work, message_delay_level="1s 5s")


def test_a_group_pops_and_gets_again_where_it_may() -> None:
    """
    Also from the retry topic of POP, whose messages are acknowledged by the right to the group.
    """

    async def work(cluster: Cluster) -> None:
        async with (
            cluster.producer(client=signed(SHOP)) as producer,
            cluster.simple_consumer("billing", client=signed(SHOP)) as consumer,
        ):
            consumer.subscribe("orders")
            await producer.send(Message("orders", b"pay"))
            first = (await consumer.receive(wait=5))[0]
            await first.retry()
            again = (await consumer.receive(wait=5))[0]
            await again.ack()
            assert (first.msg_id, 1) == (again.msg_id, again.reconsume_times)
        async with cluster.simple_consumer("others", client=signed(SHOP)) as consumer:
            consumer.subscribe("orders")
            with pytest.raises(GantryError, match="no permission to access Group:others"):
                await consumer.receive(wait=1)

    with_users(work)


def test_a_change_is_in_force_on_open_connections() -> None:
    """
    Rights, passwords and a disabled user count from the next request on, on the same connection.
    """

    async def work(cluster: Cluster) -> None:
        place = address(cluster)
        async with (
            cluster.admin(client=signed(ROOT)) as admin,
            cluster.admin(client=signed(SHOP)) as shop,
        ):

            async def prices() -> str:
                command = Command(code=30, ext={"topic": "prices", "queueId": "0"})
                answer = await shop.instance.exchange(place, command)
                return answer.remark or str(answer.code)

            assert "no matched policies." in await prices()
            await admin.update_acl(place, acl(allow("Topic:pri*", "Get")))
            assert "0" == await prices()
            await admin.update_acl(place, acl(allow("Topic:prices", "Get", decision="Deny")))
            assert "the decision is deny." in await prices()
            await admin.delete_acl(place, "User:shop", "Topic:prices")
            assert "0" == await prices()
            await admin.update_user(place, UserInfo(username="shop", user_status="disable"))
            assert "User:shop is disabled." == await prices()
            await admin.update_user(place, UserInfo(username="shop", user_status="enable"))
            assert "0" == await prices()
            await admin.update_user(place, UserInfo(username="shop", password="another"))
            assert "check signature failed." == await prices()
            await admin.delete_user(place, "shop")
            assert "User:shop is not found." == await prices()
            assert ["inner", "root"] == [each.username for each in await admin.list_users(place)]
            assert [] == await admin.list_acls(place)

    with_users(work)


def test_users_survive_a_restart_in_a_private_file(caplog: pytest.LogCaptureFixture) -> None:
    """
    The first user is made once: its changed password stays. No log line has a password.
    """
    caplog.set_level(logging.DEBUG)

    async def work(cluster: Cluster) -> None:
        place = address(cluster)
        async with cluster.admin(client=signed(ROOT)) as admin:
            await admin.update_user(place, UserInfo(username="root", password="changed-secret"))
        root = Path(cluster.config_of("broker-a").store_path_root_dir)
        await cluster.stop_broker()
        await cluster.start_broker()
        assert "SEND_OK" == await send(cluster, SHOP)
        assert "SEND_OK" == await send(cluster, Credentials("root", "changed-secret"), "secrets")
        assert "check signature failed." in await send(cluster, ROOT)
        for name in ("access.json", "access.json.bak"):
            assert 0o600 == (root / "config" / name).stat().st_mode & 0o777
        found = json.loads((root / "config" / "access.json").read_text())
        assert ["inner", "root", "shop"] == [user["username"] for user in found["users"]]

    with_users(work)
    assert "-secret" not in caplog.text


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"users":[{"username":"root","password":"pa55word', "is damaged"),
        ('{"users":[{"username":"root"}],"acls":[]}', "is damaged"),
        ('{"users":[],"acls":[{"subject":"User:x","policies":[]}]}', "is damaged"),
        ("", "is damaged"),
        ('{"users":[],"acls":[]}x', "is damaged .*; .*access.json.bak is the file before"),
        (None, "is missing, and .*access.json.bak may have users"),
    ],
)
def test_a_damaged_file_stops_the_start(text: str | None, words: str) -> None:
    """
    A broker is never open because its users cannot be read, nor takes back what was taken away.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.stop_broker()
        folder = Path(cluster.config_of("broker-a").store_path_root_dir) / "config"
        if text is None:
            (folder / "access.json").unlink()
        else:
            (folder / "access.json").write_text(text)
        with pytest.raises(ConfigError, match=words) as error:
            await cluster.start_broker()
        assert "pa55word" not in str(error.value)

    with_users(work)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"init_authentication_user": "", "inner_client_authentication_credentials": ""},
         "there is no user yet"),
        ({"init_authentication_user": '{"username":"root","pass":"pa55word"}'}, "write {"),
        ({"init_authentication_user": '["root","pa55word"'}, "initAuthenticationUser: write {"),
        ({"authentication_whitelist": "105,send"}, "authenticationWhitelist: 'send' is no number"),
        ({"authentication_enabled": False}, "authorizationEnabled: write authenticationEnabled"),
        ({"acl_enable": True}, "take either"),
    ],
)  # fmt: skip
def test_settings_that_would_lock_out_or_let_in_stop_the_start(
    settings: dict[str, Any], words: str
) -> None:
    """
    The error names the setting, and quotes no password.
    """

    async def main() -> None:
        async with Cluster(**{**SETTINGS, **settings}):
            pass

    with pytest.raises(ConfigError, match=words) as error:
        asyncio.run(main())
    assert "pa55word" not in str(error.value)


def test_white_lists_of_request_codes() -> None:
    """
    28 needs no signature; neither does 30, but it needs a right, which only who signed can have.
    35 needs none any more. A user that is only named is not believed.
    """

    async def work(cluster: Cluster) -> None:
        prices = {"topic": "prices", "queueId": "0"}
        assert 0 == (await ask(cluster, 28)).code
        failed = "Authorization failed. Please verify your access rights and try again."
        assert failed == (await ask(cluster, 30, prices)).remark
        assert failed == (await ask(cluster, 30, {**prices, "AccessKey": "root"})).remark
        assert "username cannot be null." == (await ask(cluster, 29, prices)).remark
        async with cluster.admin(client=signed(SHOP)) as admin:
            place = address(cluster)
            ext = {"clientID": "c", "consumerGroup": "others"}
            answer = await admin.instance.exchange(place, Command(code=35, ext=ext))
            assert 0 == answer.code
            answer = await admin.instance.exchange(place, Command(code=38, ext=ext))
            assert "Group:others" in (answer.remark or "")

    with_users(
        work,
        authentication_whitelist="28, 30,apache.rocketmq.v2.QueryRouteRequest",
        authorization_whitelist="35",
    )


def test_without_authorization_every_user_may_do_everything() -> None:
    """
    As in RocketMQ; a normal user still makes no super user.
    """

    async def work(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, SHOP, "secrets")
        assert "User:stranger is not found." in await send(cluster, STRANGER)
        async with cluster.admin(client=signed(SHOP)) as admin:
            user = UserInfo(username="second", password="x", user_type="Super")
            with pytest.raises(BrokerRefused, match="can only be create by super user"):
                await admin.create_user(address(cluster), user)

    with_users(work, authorization_enabled=False)


def test_a_place_in_the_log_opens_no_closed_topic() -> None:
    """
    Reading by id and sending back name an offset: the topic that is found there is asked about.
    """

    async def work(cluster: Cluster) -> None:
        async with (
            cluster.producer(client=signed(ROOT)) as producer,
            cluster.admin(client=signed(SHOP)) as admin,
        ):
            sent = [await producer.send(Message(topic, b"x")) for topic in ("secrets", "orders")]
            places = [str(int(each.offset_msg_id[-16:], 16)) for each in sent]

            async def remark(code: int, **ext: str) -> str:
                answer = await admin.instance.exchange(
                    address(cluster), Command(code=code, ext=ext)
                )
                return answer.remark or str(answer.code)

            assert "Topic:secrets" in await remark(33, offset=places[0])
            assert "0" == await remark(33, offset=places[1])
            assert "Topic:secrets" in await remark(36, offset=places[0], group="billing")
            assert "0" == await remark(36, offset=places[1], group="billing")

    with_users(work)


def test_a_slave_copies_from_a_master_with_users() -> None:
    """
    It signs with the key of its settings, which both have as a super user.
    """

    async def work(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, SHOP)
        slave = cluster.broker("broker-a-s1")
        while slave.registry.topics.get("orders") is None:
            await asyncio.sleep(0.05)
        while slave.store.log_max < cluster.broker().store.log_max:
            await asyncio.sleep(0.05)

    with_users(work, slaves=1)


def test_a_raft_group_with_users_goes_on_without_its_leader() -> None:
    """
    Its members sign with the key that all have; the first users are known to each of them.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin(client=signed(ROOT)) as admin:
            await admin.create_topic("orders", queues=1)
        assert "SEND_OK" == await send(cluster, ROOT)
        await lose_leader(cluster)
        while "SEND_OK" != (said := await send(cluster, ROOT)):
            assert "16: " not in said
            await asyncio.sleep(0.1)
        assert "User:stranger is not found." in await send(cluster, STRANGER)

    in_group(work, **SETTINGS)


def test_a_raft_group_with_users_needs_a_key_for_its_members() -> None:
    """
    As with access files: votes of strangers would count otherwise.
    """

    async def main() -> None:
        without = {**SETTINGS, "inner_client_authentication_credentials": ""}
        async with Cluster(members=3, **without):
            pass

    with pytest.raises(ConfigError, match="no key for each other"):
        asyncio.run(main())


def test_settings_are_told_without_passwords() -> None:
    """
    Every user may ask for the settings; whitelists and the like cannot be changed by a request.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin(client=signed(SHOP)) as admin:
            found = await admin.broker_config(address(cluster))
            assert "(hidden)" == found["initAuthenticationUser"]
            assert "(hidden)" == found["innerClientAuthenticationCredentials"]
            assert "true" == found["authenticationEnabled"]
        async with cluster.admin(client=signed(ROOT)) as admin:
            with pytest.raises(BrokerRefused):
                await admin.update_broker_config(
                    address(cluster), {"authorizationEnabled": "false"}
                )

    with_users(work)


def test_an_admin_of_access_files_makes_users_ready(tmp_path: Path) -> None:
    """
    Before the broker is switched over. Without access control nobody may: everybody could.
    """
    file = tmp_path / "plain_acl.yml"
    file.write_text(
        "accounts:\n"
        "  - {accessKey: operator, secretKey: operator-secret, admin: true}\n"
        "  - {accessKey: shop-app, secretKey: shop-secret}\n"
    )
    operator, app = (
        Credentials("operator", "operator-secret"),
        Credentials("shop-app", "shop-secret"),
    )
    user = UserInfo(username="root", password="root-secret", user_type="Super")

    async def main() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            async with Cluster(acl_enable=True, acl_file=str(file)) as cluster:
                async with cluster.admin(client=signed(app)) as admin:
                    with pytest.raises(BrokerRefused, match="Need admin permission"):
                        await admin.create_user(address(cluster), user)
                async with cluster.admin(client=signed(operator)) as admin:
                    await admin.create_user(address(cluster), user)
                await cluster.stop_broker()
                cluster.reconfigure("broker-a", acl_enable=False, authentication_enabled=True)
                await cluster.start_broker()
                assert "SEND_OK" == await send(cluster, ROOT, "TBW102")
            async with Cluster() as cluster, cluster.admin() as admin:
                with pytest.raises(BrokerRefused, match="there are no users here") as error:
                    await admin.create_user(address(cluster), user)
                assert 3 == error.value.code

    asyncio.run(main())


def test_doctor_asks_for_a_user() -> None:
    """
    A broker that refuses is there: its address and its role are not what is wrong.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin(client=signed(None)) as admin:
            found = examine(await take_snapshot(admin))
        assert ["access"] == [finding.check for finding in found]

    with_users(work)


def test_commands_work_with_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    `mqadmin` makes a user with policies, `gantry acl explain` says which of them decides.
    """
    cluster = GantryCluster(**SETTINGS)
    monkeypatch.setenv("NAMESRV_ADDR", cluster.namesrv)
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "root")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "root-secret")
    place = "-c DefaultCluster"
    try:
        for words in (
            f"createUser {place} -u app -p app-secret",
            f"createAcl {place} -s User:app -r Topic:ord* -a Pub -d Allow",
            f"createAcl {place} -s User:app -r Topic:orders -a Pub -d Deny -i 10.0.0.0/8",
        ):
            assert 0 == mqadmin(words.split())
        assert 0 == mqadmin(f"getUser {place} -u app".split())
        assert "app-secret" not in capsys.readouterr().out

        def explained(*words: str) -> dict[str, Any]:
            found = CliRunner().invoke(gantry, ["acl", "explain", *words, "-o", "json"])
            assert 0 == found.exit_code, found.output
            (row,) = json.loads(found.stdout)
            return dict(row)

        row = explained("app", "Pub", "Topic:orders")
        assert ("Allow", "Custom: Allow Pub on Topic:ord*") == (row["decision"], row["rule"])
        assert ["Custom: Deny Pub on Topic:orders from 10.0.0.0/8 "
                "(only from its addresses: give one)"] == row["others"]  # fmt: skip
        row = explained("app", "pub", "Topic:orders", "--address", "10.1.1.1")
        assert "Deny" == row["decision"]
        assert ["Custom: Allow Pub on Topic:ord* (another entry comes first)"] == row["others"]
        assert "no entry" == explained("app", "Sub", "Topic:orders")["rule"]
        assert "userType Super" == explained("root", "Update", "Cluster:DefaultCluster")["rule"]
        assert "User:stranger is not found." == explained("stranger", "Get", "Group:g")["why"]
        assert 2 == CliRunner().invoke(gantry, ["acl", "explain", "a", "Pub", "Topic:*"]).exit_code
    finally:
        cluster.close()


def test_users_and_policies_are_copied_to_another_broker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    All of them or those that are named, made there or changed; a name that nobody has is passed.
    """
    cluster = GantryCluster(brokers=2, **SETTINGS)
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "root")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "root-secret")

    def said(words: str) -> list[str]:
        assert 0 == mqadmin([*words.split(), "-n", cluster.namesrv]), capsys.readouterr().err
        return capsys.readouterr().out.splitlines()

    async def places() -> list[str]:
        async with Admin(cluster.namesrv) as admin:
            return [*(await admin.masters()).values()]

    try:
        one, other = asyncio.run(places())
        for name in ("app", "shop"):
            said(f"createUser -b {one} -u {name} -p {name}-secret")
            said(f"createAcl -b {one} -s User:{name} -r Topic:orders -a Pub -d Allow")
        between = f"-f {one} -t {other}"
        done = f"from {one} to {other} success."

        assert [f"copy user of app {done}"] == said(f"copyUser {between} -u app,nobody")
        assert {f"copy user of {name} {done}" for name in ("app", "inner", "root", "shop")} == {
            *said(f"copyUser {between}")
        }
        assert [f"copy acl of User:app {done}"] == said(f"copyAcl {between} -s User:app")
        assert {f"copy acl of User:{name} {done}" for name in ("app", "shop")} == {
            *said(f"copyAcl {between}")
        }
        assert said(f"listAcl -b {one}") == said(f"listAcl -b {other}")
        assert len(said(f"listUser -b {one}")) == len(said(f"listUser -b {other}")) > 4
    finally:
        cluster.close()
