"""TLS with Java's clients on our servers, and with our client on Java's."""

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import JAVA_CLIENTS, JavaClient
from process import ProcessFailed
from real import OurCluster, RealCluster, write_properties
from tlskit import Authority

from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.options import ClientOptions

pytestmark = pytest.mark.timeout(300)

TLS = {"tls.enable": "true"}
REFUSED_SECONDS = 8
PASSWORD = "opens the key"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def server_settings(authority: Authority, mode: str, **more: str) -> dict[str, str]:
    certificate = authority.issue(f"server-{mode}")
    return {
        "tls.server.mode": mode,
        "tls.server.certPath": str(certificate.cert),
        "tls.server.keyPath": str(certificate.key),
        "tls.enable": "false" if mode == "disabled" else "true",
        **more,
    }


def mutual(authority: Authority) -> dict[str, str]:
    own = authority.issue("broker")
    return {
        "tls.server.need.client.auth": "require",
        "tls.server.authClient": "true",
        "tls.server.trustCertPath": str(authority.cert),
        "tls.client.certPath": str(own.cert),
        "tls.client.keyPath": str(own.key),
    }


def known(authority: Authority, name: str, password: str = PASSWORD) -> dict[str, str]:
    """What a client needs where certificates are checked both ways; its key may be encrypted."""
    own = authority.issue(name, password=password)
    return {
        "tls.test.mode.enable": "false",
        "tls.client.certPath": str(own.cert),
        "tls.client.keyPath": str(own.key),
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": str(authority.cert),
        **({"tls.client.keyPassword": password} if password else {}),
    }


@pytest.fixture(scope="module", params=["disabled", "permissive", "enforcing"])
def ours(request: pytest.FixtureRequest, authority: Authority) -> Iterator[tuple[str, str]]:
    """The mode, and a cluster of ours in it."""
    with OurCluster(settings=server_settings(authority, request.param)) as cluster:
        yield request.param, cluster.namesrv


class TestOurServers:
    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    def test_java_with_tls_and_without(self, ours: tuple[str, str], java: JavaClient) -> None:
        """An enforcing server is there for clients with TLS only, a disabled one for plain ones."""
        mode, namesrv = ours
        topic, group = f"tls-{java.version.replace('.', '-')}", f"g-{java.version[0]}"
        sealed, plain = java.with_properties(TLS), java.with_properties({"tls.enable": "false"})
        served = {"disabled": [plain], "permissive": [sealed, plain], "enforcing": [sealed]}[mode]
        sent = served[0].run("send-sync", namesrv=namesrv, topic=topic, count=3).sent
        assert [line["status"] for line in sent] == ["SEND_OK"] * 3
        for number, reader in enumerate(served):
            got = reader.run(
                "consume-concurrently",
                namesrv=namesrv,
                topic=topic,
                group=f"{group}-{number}",
                expected=3,
            )
            assert sorted(got.bodies) == ["body-0", "body-1", "body-2"]
        for refused in {"disabled": [sealed], "permissive": [], "enforcing": [plain]}[mode]:
            with pytest.raises(ProcessFailed):
                refused.run("send-sync", namesrv=namesrv, topic=topic, timeout=REFUSED_SECONDS)

    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    def test_java_shows_its_certificate(self, authority: Authority, java: JavaClient) -> None:
        """
        Mutual TLS with the files of RocketMQ's properties; without a certificate nobody gets in.
        The client's key is encrypted, which 4.9's Netty cannot read in the form of today (PBES2).
        """
        password = "" if java.version.startswith("4.") else PASSWORD
        settings = server_settings(authority, "enforcing", **mutual(authority))
        with OurCluster(settings=settings) as cluster:
            member = java.with_properties(TLS | known(authority, "java", password))
            sent = member.run("send-sync", namesrv=cluster.namesrv, topic="sealed", count=2).sent
            assert [line["status"] for line in sent] == ["SEND_OK"] * 2
            with pytest.raises(ProcessFailed):
                java.with_properties(TLS).run(
                    "send-sync",
                    namesrv=cluster.namesrv,
                    topic="sealed",
                    timeout=REFUSED_SECONDS,
                )


@pytest.fixture(scope="module", params=["4.9.7", "5.3.3"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestTheirServers:
    """Java's servers make up a certificate in their test mode, which is their default."""

    @pytest.mark.parametrize("mode", ["disabled", "permissive", "enforcing"])
    def test_our_client_with_tls_and_without(self, version: str, mode: str) -> None:
        """As `test_java_with_tls_and_without`, the other way round."""
        properties = {
            "tls.server.mode": mode,
            "tls.enable": "false" if mode == "disabled" else "true",
        }
        served = {"disabled": [False], "permissive": [True, False], "enforcing": [True]}[mode]
        with RealCluster(version, properties=properties) as cluster:
            for uses_tls in served:
                client = ClientOptions(namesrv=cluster.namesrv, use_tls=uses_tls)
                within_90_seconds(_send_and_read(client, f"tls-{uses_tls}"))
            for uses_tls in {True, False} - set(served):
                within_90_seconds(_is_refused(cluster.namesrv, use_tls=uses_tls))

    def test_our_client_shows_its_certificate(
        self, version: str, authority: Authority, tmp_path: Path
    ) -> None:
        """It checks theirs, and they check its own, whose key is encrypted; others are refused."""
        properties = {
            **server_settings(authority, "enforcing"),
            **mutual(authority),
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(authority.cert),
        }
        file = write_properties(tmp_path / "tls.properties", known(authority, "ours"))
        stranger = Authority(tmp_path, "stranger")
        wrong = write_properties(tmp_path / "wrong.properties", known(stranger, "other"))
        with RealCluster(version, properties=properties) as cluster:
            client = ClientOptions(namesrv=cluster.namesrv, use_tls=True, tls_config=str(file))
            within_90_seconds(_send_and_read(client, "sealed"))
            within_90_seconds(_is_refused(cluster.namesrv, use_tls=True))
            within_90_seconds(_is_refused(cluster.namesrv, use_tls=True, tls_config=str(wrong)))


def within_90_seconds(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 90))


async def _send_and_read(client: ClientOptions, topic: str) -> None:
    async with Admin(client=client) as admin:
        while not (await admin.cluster()).broker_addr_table:
            await asyncio.sleep(0.2)
        await admin.create_topic(topic, queues=1)
    async with (
        Producer(group="shop", client=client) as producer,
        Consumer(group="billing", client=client, start="first") as consumer,
    ):
        consumer.subscribe(topic)
        sent = await producer.send(Message(topic, b"hello"))
        message = await anext(consumer)
        await message.ack()
        assert (message.msg_id, message.body) == (sent.msg_id, b"hello")


async def _is_refused(namesrv: str, *, use_tls: bool, tls_config: str | None = None) -> None:
    client = ClientOptions(
        namesrv=namesrv, use_tls=use_tls, tls_config=tls_config, call_timeout_ms=1000
    )
    with pytest.raises(ClientError):
        async with Admin(client=client) as admin:
            await admin.cluster()
