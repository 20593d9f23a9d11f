"""TLS with Java's clients on our servers, and with our client on Java's."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients import JAVA_CLIENTS, JavaClient
from process import ProcessFailed
from real import OurCluster, RealCluster
from tlskit import Authority

from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.options import ClientOptions

pytestmark = pytest.mark.timeout(300)

TLS = {"tls.enable": "true"}
REFUSED_SECONDS = 8


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def server_settings(authority: Authority, mode: str, **more: str) -> dict[str, str]:
    certificate = authority.issue(f"server-{mode}")
    return {
        "tls.server.mode": mode,
        "tls.server.certPath": str(certificate.cert),
        "tls.server.keyPath": str(certificate.key),
        "tls.enable": "true",
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


@pytest.fixture(scope="module", params=["permissive", "enforcing"])
def ours(request: pytest.FixtureRequest, authority: Authority) -> Iterator[tuple[str, str]]:
    """The mode, and a cluster of ours in it."""
    with OurCluster(settings=server_settings(authority, request.param)) as cluster:
        yield request.param, cluster.namesrv


class TestOurServers:
    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    def test_java_with_tls_and_without(self, ours: tuple[str, str], java: JavaClient) -> None:
        """An enforcing server is there for clients with TLS only."""
        mode, namesrv = ours
        topic, group = f"tls-{java.version.replace('.', '-')}", f"g-{java.version[0]}"
        sealed = java.with_properties(TLS)
        sent = sealed.run("send-sync", namesrv=namesrv, topic=topic, count=3).sent
        assert [line["status"] for line in sent] == ["SEND_OK"] * 3
        readers = [sealed] if mode == "enforcing" else [sealed, java]
        for number, reader in enumerate(readers):
            got = reader.run(
                "consume-concurrently",
                namesrv=namesrv,
                topic=topic,
                group=f"{group}-{number}",
                expected=3,
            )
            assert sorted(got.bodies) == ["body-0", "body-1", "body-2"]
        if mode == "enforcing":
            plain = java.with_properties({"tls.enable": "false"})
            with pytest.raises(ProcessFailed):
                plain.run("send-sync", namesrv=namesrv, topic=topic, timeout=REFUSED_SECONDS)

    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    def test_java_shows_its_certificate(self, authority: Authority, java: JavaClient) -> None:
        """Mutual TLS with the files of RocketMQ's properties; without one nobody gets in."""
        own = authority.issue("java")
        known = {
            "tls.test.mode.enable": "false",
            "tls.client.certPath": str(own.cert),
            "tls.client.keyPath": str(own.key),
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(authority.cert),
        }
        settings = server_settings(authority, "enforcing", **mutual(authority))
        with OurCluster(settings=settings) as cluster:
            member = java.with_properties(TLS | known)
            sent = member.run("send-sync", namesrv=cluster.namesrv, topic="sealed", count=2).sent
            assert [line["status"] for line in sent] == ["SEND_OK"] * 2
            with pytest.raises(ProcessFailed):
                java.with_properties(TLS).run(
                    "send-sync",
                    namesrv=cluster.namesrv,
                    topic="sealed",
                    timeout=REFUSED_SECONDS,
                )


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
def test_our_client_on_javas_servers(version: str, tmp_path: Path) -> None:
    """Java's servers make up a certificate in their test mode, which is their default."""
    properties = {"tls.server.mode": "enforcing", "tls.enable": "true"}
    with RealCluster(version, properties=properties) as cluster:
        asyncio.run(asyncio.wait_for(_send_and_read(cluster.namesrv), 90))


async def _send_and_read(namesrv: str) -> None:
    sealed = ClientOptions(namesrv=namesrv, use_tls=True)
    async with Admin(client=sealed) as admin:
        while not (await admin.cluster()).broker_addr_table:
            await asyncio.sleep(0.2)
        await admin.create_topic("sealed", queues=1)
    async with (
        Producer(group="shop", client=sealed) as producer,
        Consumer(group="billing", client=sealed, start="first") as consumer,
    ):
        consumer.subscribe("sealed")
        sent = await producer.send(Message("sealed", b"hello"))
        message = await anext(consumer)
        await message.ack()
        assert (message.msg_id, message.body) == (sent.msg_id, b"hello")
    plain = ClientOptions(namesrv=namesrv, use_tls=False, call_timeout_ms=1000)
    with pytest.raises(ClientError):
        async with Admin(client=plain) as admin:
            await admin.cluster()
