"""Access control over real sockets: who is served, who is refused, and with which words."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gantrymq import Message
from gantrymq.access.credentials import Credentials
from gantrymq.access.signature import RequestSigner
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import TcpNetwork
from gantrymq.cli.mqadmin.main import run as mqadmin
from gantrymq.client.admin.doctor.checks import examine
from gantrymq.client.admin.doctor.collect import take_snapshot
from gantrymq.client.core.errors import BrokerRefused, SendFailed
from gantrymq.client.core.options import ClientOptions
from gantrymq.nameserver.app import run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import SendRequestV2
from gantrymq.remoting.connection import Connection
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.threaded import GantryCluster

RULES = """\
globalWhiteRemoteAddresses: []
accounts:
  - {accessKey: operator, secretKey: operator-secret, admin: true}
  - accessKey: shop-app
    secretKey: shop-secret
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms: [orders=PUB|SUB, prices=SUB]
    groupPerms: [billing=SUB]
"""
OPERATOR, SHOP = Credentials("operator", "operator-secret"), Credentials("shop-app", "shop-secret")
WRONG = Credentials("shop-app", "wrong-secret")
SECONDS_MAX = 30
ACL = "org.apache.rocketmq.acl.common.AclException: "


def with_rules(
    work: Callable[[Cluster], Awaitable[None]], folder: Path, rules: str = RULES, **options: Any
) -> Path:
    """Run against a broker with an access file; returns the file."""
    file = folder / "plain_acl.yml"
    file.write_text(rules)
    own = '{"accessKey":"operator","secretKey":"operator-secret"}'
    settings = {"acl_enable": True, "acl_file": str(file), **options}
    settings.setdefault("inner_client_authentication_credentials", own)

    async def main() -> None:
        async with asyncio.timeout(SECONDS_MAX), Cluster(**settings) as cluster:
            async with cluster.admin(client=signed(OPERATOR)) as admin:
                for topic in ("orders", "prices", "secrets"):
                    await admin.create_topic(topic, queues=1)
            await work(cluster)

    asyncio.run(main())
    return file


def signed(credentials: Credentials | None) -> ClientOptions:
    return ClientOptions(credentials=credentials)


async def send(cluster: Cluster, credentials: Credentials | None, topic: str = "orders") -> str:
    """The status of a send, or the words of its refusal."""
    async with cluster.producer(client=signed(credentials)) as producer:
        try:
            return str((await producer.send(Message(topic, b"x"))).status)
        except SendFailed as failed:
            return str(failed).partition("answered code ")[2]


async def ask(cluster: Cluster, code: int, ext: dict[str, str] | None = None) -> Command:
    """An unsigned request."""
    config = cluster.config_of("broker-a")
    connection = await TcpNetwork().connect("127.0.0.1", config.listen_port, Connection, 3)
    try:
        return await connection.call(Command(code=code, ext=ext or {}), 3)
    finally:
        connection.close()


def test_a_key_sends_where_it_may(tmp_path: Path) -> None:
    """
    Right key and right: stored. Wrong secret, no key, unknown key and no right: RocketMQ's words.
    """

    async def work(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, SHOP)
        assert f"1: {ACL}Check signature failed for accessKey=shop-app" == await send(
            cluster, WRONG
        )
        assert f"1: {ACL}No accessKey is configured" == await send(cluster, None)
        unknown = Credentials("stranger", "12345678")
        assert f"1: {ACL}No acl config for stranger" == await send(cluster, unknown)
        assert f"1: {ACL}No default permission for topic:prices" == await send(
            cluster, SHOP, "prices"
        )
        assert "SEND_OK" == await send(cluster, OPERATOR, "secrets")

    with_rules(work, tmp_path)


def test_a_wrong_signature_among_right_ones_is_refused(tmp_path: Path) -> None:
    """
    Also when hundreds of sends come at once; all others are stored, in their order.
    """

    async def work(cluster: Cluster) -> None:
        signer = RequestSigner(SHOP)
        config = cluster.config_of("broker-a")
        connection = await TcpNetwork().connect(
            "127.0.0.1", config.listen_port, Connection, SECONDS_MAX
        )

        def sent(number: int) -> Command:
            header = SendRequestV2(
                producer_group="g", topic="orders", queue_id=0, born_timestamp=1,
                properties=f"UNIQ_KEY\x01A{number}\x02", reconsume_times=0,
            )  # fmt: skip
            command = Command(
                code=RequestCode.SEND_MESSAGE_V2, ext=header.to_ext(), body=b"%d" % number
            )
            signer.sign(command)
            if number == 100:
                command.body = b"another amount"
            return command

        first = await connection.call(sent(0), SECONDS_MAX)
        commands = [sent(number) for number in range(1, 200)]
        answers = [connection.submit(each, SECONDS_MAX) for each in commands]
        found = await asyncio.gather(*answers)
        connection.close()
        assert 0 == first.code
        refused = [number for number, answer in enumerate(found, 1) if answer.code]
        assert [100] == refused
        assert found[99].remark == f"{ACL}Check signature failed for accessKey=shop-app"
        offsets = [int(answer.ext["queueOffset"]) for answer in found if not answer.code]
        assert offsets == list(range(1, 199))

    with_rules(work, tmp_path)


@pytest.mark.parametrize("serialize", ["JSON", "ROCKETMQ"])
def test_a_group_consumes_and_retries_where_it_may(tmp_path: Path, serialize: Any) -> None:
    """
    Pulls, heartbeat, progress, send-back and the retry topic need SUB for group and topic alone.
    """

    async def work(cluster: Cluster) -> None:
        client = ClientOptions(credentials=SHOP, serialize=serialize)
        seen: list[int] = []
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

    with_rules(work, tmp_path, message_delay_level="1s 5s")


@pytest.mark.parametrize("group, topic", [("billing", "secrets"), ("others", "orders")])
def test_a_heartbeat_needs_every_group_and_topic_it_names(
    tmp_path: Path, group: str, topic: str
) -> None:
    """
    Nobody joins a group, or subscribes to a topic, without the right to it.
    """

    async def work(cluster: Cluster) -> None:
        body = (
            '{"clientID":"c","consumerDataSet":[{"groupName":"%s","consumeType":"CONSUME_PASSIVELY"'
            ',"messageModel":"CLUSTERING","subscriptionDataSet":[{"topic":"%s","subString":"*"}]}]}'
        )
        async with cluster.admin(client=signed(SHOP)) as admin:
            address = f"127.0.0.1:{cluster.config_of('broker-a').listen_port}"

            def beat(group: str, topic: str) -> Awaitable[Command]:
                command = Command(
                    code=RequestCode.HEART_BEAT, body=(body % (group, topic)).encode()
                )
                return admin.instance.exchange(address, command)

            assert 0 == (await beat("billing", "orders")).code
            answer = await beat(group, topic)
            assert (1, True) == (answer.code, "No default permission" in (answer.remark or ""))

    with_rules(work, tmp_path)


def test_codes_of_admins_are_for_admins(tmp_path: Path) -> None:
    """
    A key that is no admin's changes no topic, and does not read the access files.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin(client=signed(SHOP)) as admin:
            with pytest.raises(BrokerRefused, match="Need admin permission for request code=17"):
                await admin.create_topic("mine")
            await admin.cluster()
            address = f"127.0.0.1:{cluster.config_of('broker-a').listen_port}"
            assert "brokerName" in await admin.broker_config(address)
            command = Command(code=RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG)
            answer = await admin.instance.exchange(address, command)
            assert (1, False) == (answer.code, "operator-secret" in str(answer.body))

    with_rules(work, tmp_path)


def test_unsigned_requests_of_every_kind_are_refused(tmp_path: Path) -> None:
    """
    Also codes that nobody knows, and those with a reason to be refused anyway.
    """

    async def work(cluster: Cluster) -> None:
        for code in (10, 310, 320, 11, 34, 28, 26, 17, 40100, 99_999, 3001, 200050):
            answer = await ask(cluster, code)
            assert (code, 1, f"{ACL}No accessKey is configured") == (
                code,
                answer.code,
                answer.remark,
            )

    with_rules(work, tmp_path)


def test_white_lists_let_addresses_in(tmp_path: Path) -> None:
    """
    The global list needs no key; an account's own needs its name, and no signature.
    """

    async def everybody(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, None, "secrets")

    async def named(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, WRONG, "secrets")
        assert "No accessKey" in await send(cluster, None, "secrets")

    with_rules(everybody, tmp_path, RULES.replace("[]", "[127.0.0.*]"))
    with_rules(
        named,
        tmp_path,
        RULES.replace(
            "accessKey: shop-app", "accessKey: shop-app\n    whiteRemoteAddress: 127.0.0.1"
        ),
    )


def test_a_changed_file_is_in_force_within_a_second(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """
    On open connections, too. A damaged file leaves the old rules, and the log says what is wrong.
    """
    file = tmp_path / "plain_acl.yml"

    async def until(cluster: Cluster, topic: str, expected: str) -> None:
        while expected not in await send(cluster, SHOP, topic):
            await asyncio.sleep(0.05)

    async def work(cluster: Cluster) -> None:
        async with cluster.producer(client=signed(SHOP)) as producer:
            await producer.send(Message("orders", b"x"))
            file.write_text(RULES.replace("orders=PUB|SUB", "orders=DENY, secrets=PUB"))
            await until(cluster, "secrets", "SEND_OK")
            with pytest.raises(SendFailed, match="No default permission for topic:orders"):
                await producer.send(Message("orders", b"x"))
        file.write_text(RULES.replace("prices=SUB", "prices=SUP"))
        while "NOT CHANGED" not in caplog.text:
            await asyncio.sleep(0.05)
        assert "plain_acl.yml, from line 4: 'SUP' is no permission" in caplog.text
        assert "shop-secret" not in caplog.text
        assert "SEND_OK" == await send(cluster, SHOP, "secrets")
        file.write_text(RULES)
        await until(cluster, "orders", "SEND_OK")

    caplog.set_level(logging.WARNING)
    with_rules(work, tmp_path)


@pytest.mark.parametrize("rules, words", [(None, "no file"), ("accounts: {", "line 1: this is no")])
def test_a_broker_does_not_start_without_its_rules(
    tmp_path: Path, rules: str | None, words: str
) -> None:
    """
    A missing or damaged file stops the start, before a port is open.
    """
    file = tmp_path / "plain_acl.yml"
    if rules is not None:
        file.write_text(rules)

    async def main() -> None:
        async with Cluster(acl_enable=True, acl_file=str(file)):
            pass

    with pytest.raises(ConfigError, match=words):
        asyncio.run(main())


def test_the_file_lies_where_rocketmq_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    `conf/plain_acl.yml` below $ROCKETMQ_HOME, and all files of `conf/acl`; tools.yml is none.
    """
    conf = tmp_path / "conf"
    (conf / "acl").mkdir(parents=True)
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    (conf / "acl" / "more.yml").write_text(
        "accounts:\n  - {accessKey: second-app, secretKey: 12345678, defaultTopicPerm: PUB}\n"
    )
    (conf / "acl" / "tools.yml").write_text("accessKey: x\nsecretKey: y\n")

    async def work(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, Credentials("second-app", "12345678"))
        assert "SEND_OK" == await send(cluster, SHOP)

    with_rules(work, conf, acl_file="")


@pytest.mark.parametrize("trusted", ["key", "address"])
def test_a_slave_copies_from_a_master_with_access_control(tmp_path: Path, trusted: str) -> None:
    """
    Either it signs with an admin's key, or its address is on the white list, as RocketMQ wants it.
    """
    own = {} if trusted == "key" else {"inner_client_authentication_credentials": ""}
    rules = RULES if trusted == "key" else RULES.replace("[]", "[127.0.0.1]")

    async def work(cluster: Cluster) -> None:
        assert "SEND_OK" == await send(cluster, SHOP)
        slave = cluster.broker("broker-a-s1")
        while slave.registry.topics.get("orders") is None:
            await asyncio.sleep(0.05)
        while slave.store.log_max < cluster.broker().store.log_max:
            await asyncio.sleep(0.05)

    with_rules(work, tmp_path, rules, slaves=1, **own)


def test_a_name_server_may_ask_for_keys_too(tmp_path: Path) -> None:
    """
    Registration is for admins, routes for every key; without aclEnable it serves everybody.
    """
    file = tmp_path / "plain_acl.yml"
    file.write_text(RULES)

    async def main() -> None:
        config = NameServerConfig(
            listen_port=0,
            bind_address="127.0.0.1",
            acl_enable=True,
            acl_file=str(file),
            kv_config_path=str(tmp_path / "kv.json"),
            config_store_path=str(tmp_path / "namesrv.properties"),
        )
        async with run_nameserver(config) as server:
            for credentials, code, expected in (
                (None, 105, "No accessKey is configured"),
                (SHOP, 105, "No topic route info"),
                (SHOP, 104, "Need admin permission for request code=104"),
            ):
                sign = None
                if credentials is not None:
                    sign = RequestSigner(credentials).sign

                def make(sign: Any = sign) -> Connection:
                    return Connection(sign=sign)

                connection = await TcpNetwork().connect("127.0.0.1", server.port, make, 3)
                answer = await connection.call(Command(code=code, ext={"topic": "T"}), 3)
                connection.close()
                assert expected in (answer.remark or "")

    asyncio.run(main())


def test_the_brokers_own_secret_is_not_told(tmp_path: Path) -> None:
    """
    GET_BROKER_CONFIG, which every key may ask, hides the broker's own key pair.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin(client=signed(SHOP)) as admin:
            address = f"127.0.0.1:{cluster.config_of('broker-a').listen_port}"
            found = await admin.broker_config(address)
            assert "(hidden)" == found["innerClientAuthenticationCredentials"]

    with_rules(work, tmp_path)


def test_tools_change_accounts_and_white_lists(tmp_path: Path) -> None:
    """
    In force when the answer comes, written in one step, counted, and with the file's mode kept.
    """
    file = tmp_path / "plain_acl.yml"

    async def work(cluster: Cluster) -> None:
        file.chmod(0o600)
        place = f"127.0.0.1:{cluster.config_of('broker-a').listen_port}"
        new = Credentials("new-account", "first-secret")
        async with cluster.admin(client=signed(OPERATOR)) as admin:
            await admin.put_account(
                place, new.access_key, new.secret_key, topic_perms=["orders=PUB", "prices=PUB"]
            )
            assert "SEND_OK" == await send(cluster, new, "prices")
            await admin.put_account(place, new.access_key, "other-secret", topic_perms=["x=PUB"])
            assert "Check signature failed" in await send(cluster, new, "prices")
            changed = Credentials("new-account", "other-secret")
            assert "No default permission" in await send(cluster, changed, "prices")
            await admin.delete_account(place, "new-account")
            assert "No acl config for new-account" in await send(cluster, changed)
            _, versions = await admin.access_versions(place)
            assert [3] == [version["counter"] for version in versions.values()]
            await admin.put_white_addresses(place, ["127.0.0.*"])
            assert "SEND_OK" == await send(cluster, None, "secrets")
            found = await admin.access_config(place)
            assert ["operator", "shop-app"] == [a["accessKey"] for a in found.plain_access_configs]
            for refused in (
                admin.put_account(place, "short", "12345678"),
                admin.put_account(place, "long-enough", "12345678", topic_perms=["x=WRITE"]),
                admin.delete_account(place, "nobody-has-it"),
                admin.put_white_addresses(place, ["10.0.0"]),
                admin.put_white_addresses(place, ["10.0.0.1"], "/etc/passwd"),
            ):
                with pytest.raises(BrokerRefused) as error:
                    await refused
                assert error.value.code in (209, 210, 211)

    with_rules(work, tmp_path)
    assert 0o600 == file.stat().st_mode & 0o777
    assert "counter: 4" in file.read_text()


def test_mqadmin_has_its_key_in_tools_yml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    In `conf` below $ROCKETMQ_HOME, as RocketMQ's has it; without one it is refused.
    """
    (tmp_path / "conf").mkdir()
    (tmp_path / "plain_acl.yml").write_text(RULES)
    cluster = GantryCluster(
        acl_enable=True,
        acl_file=str(tmp_path / "plain_acl.yml"),
        inner_client_authentication_credentials=(
            '{"accessKey":"operator","secretKey":"operator-secret"}'
        ),
    )
    words = ["updateTopic", "-c", "DefaultCluster", "-t", "made", "-n", cluster.namesrv]
    try:
        monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
        assert 1 == mqadmin(words)
        assert "No accessKey is configured" in capsys.readouterr().err
        tools = "accessKey: operator\nsecretKey: operator-secret\n"
        (tmp_path / "conf" / "tools.yml").write_text(tools)
        assert 0 == mqadmin(words)
        assert "create topic to" in capsys.readouterr().out
    finally:
        cluster.close()


def test_a_place_in_the_log_opens_no_closed_topic(tmp_path: Path) -> None:
    """
    Reading by id, sending back and ending a transaction name an offset: its topic is asked about.
    """

    async def work(cluster: Cluster) -> None:
        place = f"127.0.0.1:{cluster.config_of('broker-a').listen_port}"
        async with (
            cluster.producer(client=signed(OPERATOR)) as producer,
            cluster.admin(client=signed(SHOP)) as admin,
        ):
            secret = await producer.send(Message("secrets", b"x"))
            order = await producer.send(Message("orders", b"x"))
            places = [str(int(each.offset_msg_id[-16:], 16)) for each in (secret, order)]

            async def ask(code: int, **ext: str) -> str:
                answer = await admin.instance.exchange(place, Command(code=code, ext=ext))
                return answer.remark or str(answer.code)

            denied = f"{ACL}No default permission for topic:secrets"
            assert denied == await ask(33, offset=places[0], topic="orders")
            assert "0" == await ask(33, offset=places[1])
            assert denied == await ask(36, offset=places[0], group="billing")
            assert "0" == await ask(36, offset=places[1], group="billing")
            half = cluster.broker()._role.parts.handlers.transactions._half_messages
            async with producer.transaction(Message("secrets", b"half")):
                (entry,) = half._table.values()
                end = {
                    "producerGroup": entry.group,
                    "tranStateTableOffset": str(entry.offset),
                    "commitLogOffset": str(entry.physical),
                    "commitOrRollback": "12",
                }
                assert denied == await ask(37, **end)

    with_rules(work, tmp_path)


def test_doctor_asks_for_a_key(tmp_path: Path) -> None:
    """
    A broker that refuses is there: its address and its role are not what is wrong.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin(client=signed(None)) as admin:
            found = examine(await take_snapshot(admin))
        assert ["access"] == [finding.check for finding in found]

    with_rules(work, tmp_path)
