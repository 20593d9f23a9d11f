"""Spark Connect: the program is a client, the connector runs where the server is."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import end_child, run_child, start_child
from sparkkit import Processes, numbered
from standalone import HOME

from gantrymq.base.network import free_port
from gantrymq.spark.runtime.java import find_java
from gantrymq.spark.runtime.session import LOOPBACK, jvm_options

pytestmark = pytest.mark.timeout(240)

UP_SECONDS_MAX = 60.0
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Connect server in a process of its own."""
    port = free_port(LOOPBACK)
    settings = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": jvm_options(find_java(), brief=True),
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    words = [HOME / "bin" / "spark-submit", "--class", SERVER]
    for key, value in settings.items():
        words += ["--conf", f"{key}={value}"]
    environ = {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": LOOPBACK,
               "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    with (tmp_path / "server.log").open("w") as log:
        child = start_child([*words, "spark-internal"], tmp_path, environ, log)
    try:
        end = time.monotonic() + UP_SECONDS_MAX
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    break
            assert child.poll() is None
            assert time.monotonic() < end, "the server is not up"
            time.sleep(0.1)
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        end_child(child)


def test_a_remote_client_reads_writes_streams_and_runs_tasks(
    server: str, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """The same calls as with a Spark at hand, and errors in a line."""
    cluster.create_topic(topic, queues=2)
    cluster.create_topic(f"{topic}-out", queues=2)
    cluster.fill(topic, [30, 20])
    client = Path(__file__).with_name("connect_client.py")

    ended = run_child(
        [sys.executable, client, server, cluster.namesrv, topic, str(tmp_path)], tmp_path
    )

    assert ended.code == 0, ended.err
    assert json.loads(ended.out) == {
        "bodies": numbered([30, 20]),
        "written": 10,
        "streamed": 50,
        "squares": [4, 9],
        "failure": "task 1 cannot: do this",
        "java": False,
    }
