"""`gantry up --secure` with Java's clients and tools: they need one file, client.yml."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import toolchain
from clients import JAVA_CLIENTS, JavaClient
from process import ProcessFailed
from real import OurCluster

from gantrymq.access.key_sources import credentials_of_file

pytestmark = pytest.mark.timeout(300)

TOOLS_SECONDS_MAX = 60
REFUSED_SECONDS = 8


@pytest.fixture(scope="module")
def secure(programs: None) -> Iterator[OurCluster]:
    with OurCluster(options=["--secure"]) as cluster:
        yield cluster


def key_file(cluster: OurCluster) -> Path:
    return cluster.store_dir / "secure" / "client.yml"


def trusting(cluster: OurCluster) -> dict[str, str]:
    """What a Java program says of TLS on its command line."""
    return {
        "tls.enable": "true",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": str(key_file(cluster)),
    }


@pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
def test_java_with_the_file_and_without(secure: OurCluster, java: JavaClient) -> None:
    """
    It trusts the authority in the file and signs with its key; without either it is refused.
    """
    own = credentials_of_file(key_file(secure))
    keys = {"accessKey": own.access_key, "secretKey": own.secret_key}
    given = {"namesrv": secure.namesrv, "topic": f"secure-{java.version.replace('.', '-')}"}
    with_file = java.with_properties(trusting(secure))

    sent = with_file.run("send-sync", count=3, **given, **keys).sent
    assert ["SEND_OK"] * 3 == [line["status"] for line in sent]
    got = with_file.run(
        "consume-concurrently", group=f"g-{java.version[0]}", expected=3, **given, **keys
    )
    assert ["body-0", "body-1", "body-2"] == sorted(got.bodies)
    plain = java.with_properties({"tls.enable": "false"})
    for refused, signed in ((with_file, {}), (plain, keys)):
        with pytest.raises(ProcessFailed):
            refused.run("send-sync", timeout=REFUSED_SECONDS, **given, **signed)


@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
def test_rocketmqs_tool_takes_the_file_for_its_tools_yml(
    version: str, secure: OurCluster, tmp_path: Path
) -> None:
    """
    As conf/tools.yml it is the key, and as trustCertPath the authority.
    """
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "logback_tools.xml").write_text("<configuration/>")
    (conf / "tools.yml").write_bytes(key_file(secure).read_bytes())
    command = [
        "java", "-Xmx128m", "-XX:TieredStopAtLevel=1", f"-Drocketmq.home.dir={tmp_path}",
        f"-Duser.home={tmp_path}", *(f"-D{key}={value}" for key, value in trusting(secure).items()),
        "-cp", toolchain.java_class_path(toolchain.JAVA_CLIENTS[version]),
        "org.apache.rocketmq.tools.command.MQAdminStartup", "updateTopic", "-n", secure.namesrv,
        "-b", secure.broker_addr, "-t", f"by_{version.replace('.', '_')}",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TOOLS_SECONDS_MAX, check=False,
        env={**os.environ, "ROCKETMQ_HOME": str(tmp_path)},
    )  # fmt: skip

    assert "create topic to" in done.stdout + done.stderr
