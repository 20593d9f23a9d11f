"""Pushes metrics to a collector of OpenTelemetry: OTLP over gRPC.

Messages are built on the event loop, in the slices in which metrics are collected, and sent by a
thread of their own, some thousand points at a time. A push that fails is logged, and the next one
tells the present totals; with metricsInDelta it tells what the failed one did not.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.histogram import Distribution
from gantrymq.base.telemetry_settings import TelemetrySettings, pairs_of
from gantrymq.metrics.growth import Growth, Seen
from gantrymq.metrics.metric import Metric, Row
from gantrymq.metrics.scrape import MetricsSource

log = logging.getLogger(__name__)

POINTS_MAX: Final = 1_000
"""Points of one request: about 500 KB, made into bytes in some milliseconds."""
METHOD: Final = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
WARN_SECONDS: Final = 60.0
NEEDED: Final = ("grpc", "opentelemetry.proto.collector.metrics.v1")
CUMULATIVE: Final = 2
DELTA: Final = 1
"""Values of AggregationTemporality."""


def check_installed() -> None:
    """Raise a ConfigError if the packages that OTLP_GRPC needs are not there."""
    for name in NEEDED:
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ConfigError(
                f"metricsExporterType=OTLP_GRPC needs {name.partition('.')[0]}: "
                "pip install 'gantrymq[otlp]'"
            )


@dataclass
class _Request:
    """Metrics that go to the collector at once."""

    message: Any
    seen: Seen = field(default_factory=dict)
    points: int = 0


class MetricsPush:
    """Collects and pushes; `close` ends its thread."""

    def __init__(
        self, source: MetricsSource, settings: TelemetrySettings, service: str, clock: WallClock
    ) -> None:
        import grpc
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        from opentelemetry.proto.metrics.v1 import metrics_pb2

        self._source, self._service, self._clock = source, service, clock
        self._service_pb2, self._pb2 = metrics_service_pb2, metrics_pb2
        self._growth = Growth() if settings.metrics_in_delta else None
        self._series_max = settings.metrics_otel_cardinality_limit
        self._timeout = settings.metric_grpc_exporter_time_out_in_mills / 1000
        headers = pairs_of("metricsGrpcExporterHeader", settings.metrics_grpc_exporter_header)
        self._headers = [(name.lower(), value) for name, value in headers.items()]
        self._channel = _channel(grpc, settings.metrics_grpc_exporter_target.strip())
        self._export = self._channel.unary_unary(
            METHOD,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=metrics_service_pb2.ExportMetricsServiceResponse.FromString,
        )
        self._failure: type[Exception] = grpc.RpcError
        self._thread = ThreadPoolExecutor(1, "metrics-push")
        self._since_ms = clock.now_ms()
        self._warned_at = -WARN_SECONDS

    async def push(self) -> None:
        """Push all metrics; what fails is logged."""
        loop, began_ms = asyncio.get_running_loop(), self._clock.now_ms()
        for request in [each async for each in self._requests(began_ms)]:
            try:
                answer = await loop.run_in_executor(self._thread, self._send, request.message)
            except self._failure as error:
                self._warn(loop.time(), error)
                return
            if answer.partial_success.error_message:
                self._warn(loop.time(), answer.partial_success.error_message)
            if self._growth is not None:
                self._growth.keep(request.seen)
        if self._growth is not None:
            self._since_ms = began_ms

    def close(self) -> None:
        """Give up a push that is under way."""
        self._channel.close()
        self._thread.shutdown(wait=True)

    def _send(self, message: Any) -> Any:
        return self._export(message, timeout=self._timeout, metadata=self._headers)

    def _warn(self, now: float, error: object) -> None:
        if now - self._warned_at < WARN_SECONDS:
            return
        self._warned_at = now
        code, details = getattr(error, "code", None), getattr(error, "details", None)
        if callable(code) and callable(details):
            error = f"{code().name}: {details()}"
        log.warning("metrics were not pushed, trying again: %s", error)

    # building

    async def _requests(self, now_ms: int) -> AsyncIterator[_Request]:
        series: dict[str, int] = {}
        cut: dict[str, int] = {}
        request = self._new()
        async for metric, rows in self._source.samples():
            room = self._series_max - series.get(metric.name, 0)
            if len(rows) > room:
                cut[metric.name] = cut.get(metric.name, 0) + len(rows) - room
            kept = rows[: max(0, room)]
            series[metric.name] = series.get(metric.name, 0) + len(kept)
            for at in range(0, len(kept), POINTS_MAX):
                self._add(request, metric, kept[at : at + POINTS_MAX], now_ms)
                if request.points >= POINTS_MAX:
                    yield request
                    request = self._new()
        self._source.tell_of_cuts(cut)
        if request.points:
            yield request

    def _new(self) -> _Request:
        message = self._service_pb2.ExportMetricsServiceRequest()
        resource = message.resource_metrics.add()
        _set(resource.resource.attributes, {"service.name": self._service})
        resource.scope_metrics.add().scope.name = "gantrymq"
        return _Request(message)

    def _add(self, request: _Request, metric: Metric, rows: Sequence[Row], now_ms: int) -> None:
        if not rows:
            return
        told = request.message.resource_metrics[0].scope_metrics[0].metrics.add()
        told.name, told.description, told.unit = metric.pushed_name, metric.help, metric.unit
        kind = {"counter": told.sum, "gauge": told.gauge, "histogram": told.histogram}[metric.kind]
        if metric.kind != "gauge":
            kind.aggregation_temporality = CUMULATIVE if self._growth is None else DELTA
        if metric.kind == "counter":
            told.sum.is_monotonic = True
        growth = self._growth
        for row in rows:
            labels, value = row if growth is None else growth.of(metric, row, request.seen)
            point = kind.data_points.add(time_unix_nano=now_ms * 1_000_000)
            if metric.kind != "gauge":
                point.start_time_unix_nano = self._since_ms * 1_000_000
            own = dict(zip(metric.labels, labels, strict=True))
            _set(point.attributes, {**self._source.common, **own})
            if isinstance(value, Distribution):
                point.explicit_bounds.extend(value.bounds)
                point.bucket_counts.extend(value.counts)
                point.count, point.sum = sum(value.counts), value.total
            elif isinstance(value, int):
                point.as_int = value
            else:
                point.as_double = value
        request.points += len(rows)


def _set(attributes: Any, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        # A name from the network may have halves of characters, which protobuf refuses.
        text = value.encode("utf-8", "replace").decode()
        attributes.add(key=name).value.string_value = text


def _channel(grpc: Any, target: str) -> Any:
    """A connection to `http://host:port`; with https://, or without either, it is TLS."""
    scheme, mark, rest = target.partition("://")
    address = (rest if mark else target).rstrip("/")
    if scheme == "http" and mark:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials())
