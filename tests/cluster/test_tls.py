"""Everything over TLS: clients, name servers, copies and raft groups; and servers as processes."""

import asyncio
import http.client
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from groups import until
from tlskit import Authority

from gantrymq import Message
from gantrymq.base.network import TcpNetwork, free_port
from gantrymq.base.tls.files import tls_network
from gantrymq.base.tls.network import TlsMode
from gantrymq.base.tls.settings import TlsParty, TlsSettings
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.options import ClientOptions
from gantrymq.testing.cluster import Cluster

SLAVE = "broker-a-s1"
BIN = Path(sys.executable).parent
READY = {"mqnamesrv": "The Name Server boot success", "mqbroker": "boot success"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def mutual(authority: Authority) -> TlsSettings:
    """Every connection is TLS, and both ends show a certificate of the authority."""
    certificate = authority.issue("member")
    party = TlsParty(
        cert_path=str(certificate.cert),
        key_path=str(certificate.key),
        trust_path=str(authority.cert),
        checks_peer=True,
    )
    return TlsSettings(TlsMode.ENFORCING, "require", party, enable=True, client=party)


def over_tls(authority: Authority, **options: object) -> Cluster:
    cluster = Cluster(**options)  # type: ignore[arg-type]
    cluster.network = tls_network(mutual(authority), cluster.network)
    return cluster


async def sends_and_reads(cluster: Cluster) -> None:
    await cluster.create_topic("orders", 1)
    async with cluster.producer() as producer, cluster.consumer(start="first") as consumer:
        consumer.subscribe("orders")
        await producer.send(Message("orders", b"sealed" * 100_000))
        message = await asyncio.wait_for(anext(consumer), 20)
        await message.ack()
        assert message.body == b"sealed" * 100_000


class TestClusters:
    def test_a_sync_master_and_its_slave(self, authority: Authority) -> None:
        """The copy to the slave is TLS, too: each send waits for it."""

        async def story() -> None:
            settings = {"broker_role": "SYNC_MASTER"}
            async with over_tls(authority, slaves=1, **settings) as cluster:
                await sends_and_reads(cluster)
                master, slave = (cluster.broker(name).store for name in ("broker-a", SLAVE))
                await until(lambda: slave.log_max == master.log_max)
                async with cluster.producer() as producer:
                    sent = await producer.send(Message("orders", b"copied"))
                assert (sent.status, slave.log_max) == ("SEND_OK", master.log_max)

        asyncio.run(asyncio.wait_for(story(), 60))

    def test_a_raft_group(self, authority: Authority) -> None:
        """Members talk to each other over TLS."""

        async def story() -> None:
            async with over_tls(authority, members=3) as cluster:
                await cluster.wait_for_leader()
                await sends_and_reads(cluster)

        asyncio.run(asyncio.wait_for(story(), 60))

    def test_without_tls_nothing_is_to_be_had(self, authority: Authority) -> None:
        """A plain client gets no answer from an enforcing name server."""

        async def story() -> None:
            async with over_tls(authority) as cluster:
                options = ClientOptions(namesrv=cluster.namesrv, call_timeout_ms=1000)
                with pytest.raises(ClientError):
                    async with Admin(client=options, network=TcpNetwork()) as admin:
                        await admin.topics()

        asyncio.run(asyncio.wait_for(story(), 30))


def scraped(address: str, authority: Authority | None = None) -> str:
    """What a scraper reads, which trusts the authority or speaks no TLS."""
    place = urlsplit(address)
    port = place.port or 0
    link: http.client.HTTPConnection
    if authority is None:
        link = http.client.HTTPConnection("localhost", port, timeout=20)
    else:
        context = ssl.create_default_context(cafile=str(authority.cert))
        link = http.client.HTTPSConnection("localhost", port, timeout=20, context=context)
    with closing(link):
        link.request("GET", place.path)
        return link.getresponse().read().decode()


def test_metrics_are_told_over_tls(authority: Authority, tmp_path: Path) -> None:
    """
    Where TLS is enforced, plain HTTP gets nothing, and whoever trusts others does not read on.
    """
    certificate = authority.issue("server")
    own = TlsParty(cert_path=str(certificate.cert), key_path=str(certificate.key))
    trust = TlsParty(trust_path=str(authority.cert), checks_peer=True)
    settings = TlsSettings(TlsMode.ENFORCING, "none", own, enable=True, client=trust)
    other = Authority(tmp_path, "another")

    async def story() -> None:
        cluster = Cluster(metrics_exporter_type="PROM", metrics_prom_exporter_port=0)
        cluster.network = tls_network(settings, cluster.network)
        async with cluster:
            await cluster.create_topic("orders", 1)
            address = cluster.broker().metrics_address or ""
            assert address.startswith("https://")
            assert "rocketmq_topic_number" in await asyncio.to_thread(scraped, address, authority)
            with pytest.raises((http.client.HTTPException, OSError)):
                await asyncio.to_thread(scraped, address)
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.to_thread(scraped, address, other)

    asyncio.run(asyncio.wait_for(story(), 60))


@contextmanager
def server(*words: str) -> Iterator[None]:
    """A server as a process, until the block is left."""
    with subprocess.Popen(
        [BIN / words[0], *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert READY[words[0]] in said, said + process.stdout.read()
            yield
        finally:
            process.terminate()


class TestProcesses:
    def test_servers_and_tools_with_rocketmqs_names(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        """Settings in a file and on the command line; `gantry` takes them from the environment."""
        certificate = authority.issue("server", password="secret")
        config = tmp_path / "tls.properties"
        config.write_text(
            f"tls.server.certPath={certificate.cert}\ntls.server.keyPath={certificate.key}\n"
            f"tls.server.keyPassword=secret\n"
            f"tls.client.authServer=true\ntls.client.trustCertPath={authority.cert}\n"
        )
        port = free_port("127.0.0.1")
        broker_port = free_port("127.0.0.1", (-2, 1))
        common = ["-D", "tls.server.mode=enforcing", "-D", f"tls.config.file={config}"]
        names = ["-D", f"listenPort={port}", "-D", "bindAddress=127.0.0.1"]
        names += ["-D", f"kvConfigPath={tmp_path}/kv.json", "-D", f"logDirectory={tmp_path}"]
        names += ["-D", f"configStorePath={tmp_path}/namesrv.properties"]
        namesrv = f"127.0.0.1:{port}"
        stores = ["-D", f"storePathRootDir={tmp_path}/store", "-D", f"logDirectory={tmp_path}"]
        stores += ["-D", "storeProfile=dev", "-D", f"listenPort={broker_port}"]
        stores += ["-D", "brokerIP1=127.0.0.1", "-D", "bindAddress=127.0.0.1"]
        plain = {**os.environ, "NAMESRV_ADDR": namesrv}
        sealed = {**plain, "ROCKETMQ_TLS_ENABLE": "true", "ROCKETMQ_TLS_CONFIG": str(config)}
        with (
            server("mqnamesrv", *names, *common),
            server("mqbroker", "-n", namesrv, *stores, *common, "-D", "tls.enable=true"),
        ):
            assert "SEND_OK" in gantry(sealed, "send", "orders", "hello").stdout
            assert (
                "hello"
                in gantry(sealed, "tail", "orders", "--from", "first", "--until", "now").stdout
            )
            certificate.key.unlink()  # tools share the file, and need no key of a server
            assert "orders" in gantry(sealed, "topic", "list").stdout
            refused = gantry(plain, "topic", "list")
            assert refused.returncode == 1
            assert "Traceback" not in refused.stderr

    @pytest.mark.parametrize(
        ("settings", "text"),
        [
            (["tls.server.mode=strict"], "it is disabled, permissive or enforcing"),
            (["tls.server.mode=enforcing"], "needs a certificate"),
            (["tls.server.certPath=x.pem"], "go together"),
            (["tls.server.certPath=x.pem", "tls.server.keyPath=x.key"], "x.pem: No such file"),
            (["tls.server.certpath=x.pem"], "did you mean tls.server.certPath?"),
            (["tls.server.authClient=true"], "needs tls.server.trustCertPath"),
            (["tls.server.need.client.auth=require"], "tls.server.authClient=true"),
            (["tls.config.file=nowhere"], "cannot read nowhere"),
        ],
    )
    @pytest.mark.parametrize("program", ["mqnamesrv", "mqbroker"])
    def test_bad_settings_stop_the_start(
        self, tmp_path: Path, program: str, settings: list[str], text: str
    ) -> None:
        """One line that says what to do."""
        given = [word for setting in settings for word in ("-D", setting)]
        done = subprocess.run(
            [BIN / program, *given],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert text in done.stderr


def gantry(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "gantry", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
