"""Spark on a cluster with access control and TLS: with the files, and without."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from sparkkit import bodies_of, numbered
from tlskit import Authority

from gantrymq import ClientOptions, Credentials, Message
from gantrymq.base.tls.files import tls_network
from gantrymq.base.tls.network import TlsMode
from gantrymq.base.tls.settings import TlsParty, TlsSettings
from gantrymq.cli.up.secure import key_file_text
from gantrymq.testing.cluster import Cluster

pytestmark = pytest.mark.timeout(240)

RULES = """\
accounts:
  - {accessKey: operator, secretKey: operator-secret, admin: true}
  - accessKey: spark-job
    secretKey: spark-secret
    topicPerms: [orders=PUB|SUB]
    defaultGroupPerm: SUB
"""
OPERATOR = Credentials("operator", "operator-secret")
SECONDS_MAX = 60


class SecuredCluster:
    """Name server and broker that take TLS only, and keys of `RULES` only; on a thread."""

    def __init__(self, folder: Path) -> None:
        self._authority = Authority(folder)
        rules = folder / "plain_acl.yml"
        rules.write_text(RULES)
        self._settings = {
            "acl_enable": True,
            "acl_file": str(rules),
            "inner_client_authentication_credentials": (
                '{"accessKey":"operator","secretKey":"operator-secret"}'
            ),
        }
        self.keys = folder / "keys.yml"
        self.keys.write_text("accessKey: spark-job\nsecretKey: spark-secret\n")
        self.tls = folder / "tls.properties"
        self.tls.write_text(
            f"tls.client.authServer=true\ntls.client.trustCertPath={self._authority.cert}\n"
        )
        self.one_file = folder / "client.yml"
        """Both in one, as `gantry up --secure` writes it."""
        authority = self._authority.cert.read_text()
        self.one_file.write_text(key_file_text("spark-job", "spark-secret", authority))
        self.namesrv = ""
        self._up, self._end = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> "SecuredCluster":
        self._thread.start()
        assert self._up.wait(SECONDS_MAX)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        certificate = self._authority.issue("server")
        party = TlsParty(cert_path=str(certificate.cert), key_path=str(certificate.key))
        trust = TlsParty(trust_path=str(self._authority.cert), checks_peer=True)
        settings = TlsSettings(TlsMode.ENFORCING, "none", party, enable=True, client=trust)
        cluster = Cluster(**self._settings)
        cluster.network = tls_network(settings, cluster.network)
        async with cluster:
            operator = ClientOptions(credentials=OPERATOR)
            async with cluster.admin(client=operator) as admin:
                for topic in ("orders", "prices"):
                    await admin.create_topic(topic, queues=2)
            async with cluster.producer(client=operator) as producer:
                await producer.send(Message("prices", b"not for everybody"))
            self.namesrv = cluster.namesrv
            self._up.set()
            await self._end.wait()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with SecuredCluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


def options(secured: SecuredCluster, topic: str = "orders", **changes: str) -> dict[str, str]:
    found = {
        "nameServer": secured.namesrv,
        "topic": topic,
        "credentialsFile": str(secured.keys),
        "tlsConfigFile": str(secured.tls),
        **changes,
    }
    return {name: value for name, value in found.items() if value}


def write(rows: Any, **given: str) -> None:
    rows.write.format("rocketmq").options(**given).mode("append").save()


def test_rows_go_out_and_come_back_with_two_files(spark: Any, secured: SecuredCluster) -> None:
    """Exactly once in, all of it out, on driver and tasks; the plan shows no secret."""
    rows = spark.range(0, 300, 1, 2).selectExpr("concat('0:', id) AS body")
    write(rows, **options(secured, delivery="exactly-once"))
    read = spark.read.format("rocketmq").options(**options(secured)).load()

    assert bodies_of(read.collect()) == numbered([300])
    plan = read._jdf.queryExecution().toString()
    assert "spark-secret" not in plan


def test_the_file_of_a_secure_cluster_is_enough(spark: Any, secured: SecuredCluster) -> None:
    """It turns TLS on, and has the key pair and the authority."""
    one = {"credentialsFile": str(secured.one_file), "tlsConfigFile": ""}
    rows = spark.range(0, 4, 1, 1).selectExpr("concat('1:', id) AS body")
    write(rows, **options(secured, **one))
    read = spark.read.format("rocketmq").options(**options(secured, **one)).load()

    assert {f"1:{number}" for number in range(4)} <= set(bodies_of(read.collect()))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"credentialsFile": ""}, "No accessKey is configured"),
        ({"topic": "prices"}, "No default permission for topic:prices"),
        ({"credentialsFile": "/nowhere.yml"}, "cannot read /nowhere.yml"),
    ],
)
def test_without_a_right_nothing_is_written_or_read(
    spark: Any, secured: SecuredCluster, changes: dict[str, str], words: str
) -> None:
    """The broker's words reach the user, of source and sink."""
    given = options(secured, **changes)
    with pytest.raises(PySparkException, match=words):
        spark.read.format("rocketmq").options(**given).load().collect()
    rows = spark.range(0, 4, 1, 1).selectExpr("'x' AS body")
    with pytest.raises(PySparkException, match=words):
        write(rows, **given)


def test_a_stream_reads_with_the_same_files(
    spark: Any, secured: SecuredCluster, tmp_path: Path
) -> None:
    """Every message that is there, in a micro-batch of its tasks."""
    stream = (
        spark.readStream.format("rocketmq")
        .options(**options(secured, startingOffsets="earliest"))
        .load()
        .selectExpr("cast(body AS string) AS body")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"))
    )
    assert stream.awaitTermination(SECONDS_MAX)
    assert stream.exception() is None
    assert spark.read.parquet(str(tmp_path / "rows")).count() >= 300
