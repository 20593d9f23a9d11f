"""Metrics that are pushed: to a real gRPC server that takes OTLP, and into the log."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as stubs
from tlskit import Authority

from gantrymq import Message
from gantrymq.base.network import free_port
from gantrymq.metrics import table
from gantrymq.testing.cluster import HOST, Cluster

SECONDS_MAX = 20
DELTA, CUMULATIVE = 1, 2


class Collector(stubs.MetricsServiceServicer):  # type: ignore[misc]
    """Keeps what it is sent; refuses as long as it is told to."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.refuses = False
        self.refused = 0

    def Export(self, request: Any, context: Any) -> Any:
        if self.refuses:
            self.refused += 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        self.headers.append(dict(context.invocation_metadata()))
        self.requests.append(request)
        return service.ExportMetricsServiceResponse()

    def metrics(self) -> list[Any]:
        """All metrics of all requests, in their order."""
        return [
            metric
            for request in list(self.requests)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    def counts(self, name: str, **labels: str) -> list[int]:
        """The values that a counter had in each push."""
        return [
            point.as_int
            for metric in self.metrics()
            if metric.name == name
            for point in metric.sum.data_points
            if labels.items() <= attributes(point).items()
        ]

    async def until(self, name: str, **labels: str) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while not self.counts(name, **labels):
                await asyncio.sleep(0.02)


def attributes(point: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in point.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    server = grpc.server(ThreadPoolExecutor(2))
    stubs.add_MetricsServiceServicer_to_server(found, server)
    found.port = server.add_insecure_port(f"{HOST}:0")  # type: ignore[attr-defined]
    server.start()
    yield found
    server.stop(None).wait()


def pushing(collector: Any, **more: Any) -> dict[str, Any]:
    return {
        "metrics_exporter_type": "OTLP_GRPC",
        "metrics_grpc_exporter_target": f"http://{HOST}:{collector.port}",
        "metrics_grpc_exporter_header": "Authorization:Bearer x",
        "metric_grpc_exporter_interval_in_mills": 50,
        **more,
    }


IN = "rocketmq_messages_in_total"


def test_a_collector_gets_all_metrics(collector: Collector) -> None:
    """Totals, with labels, kinds, names and units of OTLP, and the headers of the settings."""

    async def main() -> None:
        async with Cluster(**pushing(collector, metrics_label="zone:north")) as cluster:
            await cluster.create_topic("orders", 1)
            async with cluster.producer() as producer:
                for _ in range(3):
                    await producer.send(Message("orders", b"x" * 2_000))
            async with asyncio.timeout(SECONDS_MAX):
                while 3 not in collector.counts(IN, topic="orders", zone="north"):
                    await asyncio.sleep(0.02)

    asyncio.run(main())
    assert "Bearer x" == collector.headers[-1]["authorization"]
    resource = collector.requests[-1].resource_metrics[0].resource
    assert {"service.name": "gantrymq-broker"} == attributes(resource)
    last = {metric.name: metric for metric in collector.metrics()}
    declared = {metric.pushed_name: metric for metric in table.METRICS}
    assert last.keys() <= declared.keys()
    for name, metric in last.items():
        kind = {"sum": "counter"}.get(metric.WhichOneof("data"), metric.WhichOneof("data"))
        assert (declared[name].kind, declared[name].unit) == (kind, metric.unit)
    assert "bytes" == last["rocketmq_storage_size"].unit
    assert (CUMULATIVE, True) == (last[IN].sum.aggregation_temporality, last[IN].sum.is_monotonic)
    (sizes,) = (
        point
        for point in last["rocketmq_message_size"].histogram.data_points
        if attributes(point)["topic"] == "orders"
    )
    assert (3, [0, 3, 0, 0, 0, 0, 0]) == (sizes.count, list(sizes.bucket_counts))
    assert sizes.start_time_unix_nano <= sizes.time_unix_nano


def test_differences_are_made_up_for_after_a_failed_push(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """With metricsInDelta the sum of what arrived is what happened; the failure is logged once."""

    async def main() -> None:
        async with Cluster(**pushing(collector, metrics_in_delta=True)) as cluster:
            await cluster.create_topic("orders", 1)
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"x"))
                await collector.until(IN, topic="orders")
                collector.refuses, before = True, collector.refused
                await producer.send(Message("orders", b"x"))
                async with asyncio.timeout(SECONDS_MAX):
                    while collector.refused < before + 3:
                        await asyncio.sleep(0.02)
                collector.refuses = False
                await producer.send(Message("orders", b"x"))
                async with asyncio.timeout(SECONDS_MAX):
                    while sum(collector.counts(IN, topic="orders", aggregation="delta")) < 3:
                        await asyncio.sleep(0.02)

    asyncio.run(main())
    assert 3 == sum(collector.counts(IN, topic="orders"))
    last = {metric.name: metric for metric in collector.metrics()}
    assert DELTA == last[IN].sum.aggregation_temporality
    assert ["metrics were not pushed, trying again: UNAVAILABLE: not now"] == [
        record.getMessage() for record in caplog.records if "pushed" in record.getMessage()
    ]


@pytest.mark.parametrize("scheme", ["https://", ""])
def test_a_collector_gets_them_over_tls(tmp_path: Path, scheme: str) -> None:
    """Without `http://` the push is encrypted, and only to a server whose authority is trusted."""
    authority, found = Authority(tmp_path), Collector()
    files = authority.issue("collector")
    server = grpc.server(ThreadPoolExecutor(2))
    stubs.add_MetricsServiceServicer_to_server(found, server)
    pair = [(files.key.read_bytes(), files.cert.read_bytes())]
    port = server.add_secure_port(f"{HOST}:0", grpc.ssl_server_credentials(pair))
    server.start()
    settings = tmp_path / "broker.conf"
    settings.write_text(
        f"brokerIP1={HOST}\nbindAddress={HOST}\nlistenPort=0\nstorePathRootDir={tmp_path}/store\n"
        f"storeProfile=dev\nlogDirectory={tmp_path}/logs\nmetricsExporterType=OTLP_GRPC\n"
        f"metricsGrpcExporterTarget={scheme}localhost:{port}\n"
        "metricGrpcExporterIntervalInMills=50\n"
    )
    strangers = Authority(tmp_path, "another").cert
    try:
        for trusted, seconds in ((strangers, 1), (authority.cert, SECONDS_MAX)):
            environment = os.environ | {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(trusted)}
            with _broker(settings, environment):
                ends = time.monotonic() + seconds
                while time.monotonic() < ends and not found.requests:
                    time.sleep(0.05)
            assert bool(found.requests) == (trusted == authority.cert)
    finally:
        server.stop(None).wait()


@contextmanager
def _broker(settings: Path, environment: dict[str, str]) -> Iterator[None]:
    """A broker in a process of its own: gRPC reads whom it trusts once in a process."""
    code = "from gantrymq.cli.servers import mqbroker; mqbroker()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "-c", settings], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert running.stdout is not None
        assert any(b"boot success" in line for line in running.stdout)
        yield
    finally:
        running.terminate()
        running.communicate(timeout=SECONDS_MAX)


def test_a_collector_that_is_away_does_not_hold_the_broker() -> None:
    """Sends are answered while pushes wait for their timeout, and the broker stops at once."""

    async def main() -> None:
        target = f"http://{HOST}:{free_port(HOST)}"
        settings = {
            "metrics_exporter_type": "OTLP_GRPC", "metrics_grpc_exporter_target": target,
            "metric_grpc_exporter_interval_in_mills": 10,
        }  # fmt: skip
        async with asyncio.timeout(SECONDS_MAX), Cluster(**settings) as cluster:
            await cluster.create_topic("orders", 1)
            async with cluster.producer() as producer:
                for _ in range(200):
                    await producer.send(Message("orders", b"x"))

    asyncio.run(main())


def test_without_the_extra_the_start_says_how_to_install_it(tmp_path: Path) -> None:
    """In one line, before anything is opened."""
    program = (
        "import sys; sys.modules['grpc'] = None\n"
        "from gantrymq.cli.servers import mqnamesrv\n"
        "mqnamesrv(['-DmetricsExporterType=OTLP_GRPC', '-DmetricsGrpcExporterTarget=http://c:4317',"
        f" '-DconfigStorePath={tmp_path}/n', '-DkvConfigPath={tmp_path}/kv', '-DlistenPort=0',"
        " '-DlogDirectory='])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert 1 == done.returncode
    assert "" == done.stdout
    assert (
        "error: metricsExporterType=OTLP_GRPC needs grpc: pip install 'gantrymq[otlp]'\n"
        == done.stderr
    )


def test_the_log_gets_one_object_for_each_metric(caplog: pytest.LogCaptureFixture) -> None:
    """With LOG, under the names of OTLP; with metricsInDelta what counters grew by."""

    async def main() -> None:
        settings = {
            "metrics_exporter_type": "LOG", "metrics_in_delta": True,
            "metric_logging_exporter_interval_in_mills": 20,
        }  # fmt: skip
        async with Cluster(**settings) as cluster:
            await cluster.create_topic("orders", 1)
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"x"))
            async with asyncio.timeout(SECONDS_MAX):
                while told()[-1:] != [0]:
                    await asyncio.sleep(0.02)

    def told() -> list[int]:
        texts = (record.getMessage() for record in list(caplog.records))
        lines = [json.loads(text[len("metric ") :]) for text in texts if text.startswith("metric ")]
        return [
            sample["value"]
            for line in lines
            if line["name"] == IN and line["common"]["aggregation"] == "delta"
            for sample in line["samples"]
            if sample["labels"]["topic"] == "orders"
        ]

    with caplog.at_level(logging.INFO, "gantrymq.metrics"):
        asyncio.run(main())
    assert (1, 0) == (sum(told()), told()[-1])
