"""Hands the metrics of a server to whoever `metricsExporterType` names."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gantrymq.access.server_access import ServerAccess
from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.base.telemetry_settings import TelemetrySettings
from gantrymq.base.tls.network import TlsNetwork
from gantrymq.metrics.access import ScrapeAccess
from gantrymq.metrics.http import MetricsPort
from gantrymq.metrics.log_lines import MetricsLog
from gantrymq.metrics.metric import Collector
from gantrymq.metrics.otlp import MetricsPush, check_installed
from gantrymq.metrics.process import ProcessMetrics
from gantrymq.metrics.scrape import MetricsSource
from gantrymq.metrics.text import CONTENT_TYPE

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetricsServer:
    """What a server's metrics need of it."""

    settings: TelemetrySettings
    bind_address: str
    identity: Mapping[str, str]
    """The values of cluster, node_type and node_id."""
    process: ProcessMetrics
    collectors: Callable[[], Sequence[Collector]]
    """Asked at each collection: the role of a server may change."""
    network: Network
    clock: WallClock
    access: ServerAccess | None = None


@asynccontextmanager
async def export_metrics(server: MetricsServer) -> AsyncIterator[str | None]:
    """Export as long as the block; gives the address that Prometheus reads, if there is one."""
    settings, process = server.settings, server.process
    if settings.metrics_exporter_type == "DISABLE":
        yield None
        return
    source = MetricsSource(
        settings, server.identity, lambda: (process.collect, *server.collectors())
    )
    process.loop_lag.start()
    async with AsyncExitStack() as stack:
        stack.callback(process.loop_lag.stop)
        if settings.metrics_exporter_type == "PROM":
            yield await _serve(server, source, stack)
            return
        background = Background("the export of metrics")
        if settings.metrics_exporter_type == "LOG":
            lines = MetricsLog(source, delta=settings.metrics_in_delta)
            seconds = settings.metric_logging_exporter_interval_in_mills / 1000
            background.every(seconds, lines.write, may_be_late=True)
        else:
            service = f"gantrymq-{server.identity['node_type']}"
            push = MetricsPush(source, settings, service, server.clock)
            stack.callback(push.close)
            seconds = settings.metric_grpc_exporter_interval_in_mills / 1000
            background.every(seconds, push.push, may_be_late=True)
        stack.push_async_callback(background.close)
        yield None


def check_exporter(settings: TelemetrySettings) -> None:
    """Raise a ConfigError if the chosen exporter is not installed."""
    if settings.metrics_exporter_type == "OTLP_GRPC":
        check_installed()


async def _serve(server: MetricsServer, source: MetricsSource, stack: AsyncExitStack) -> str:
    settings = server.settings
    host = settings.metrics_prom_exporter_host or server.bind_address
    index = f"{' '.join(filter(None, server.identity.values()))}: metrics are at /metrics\n"
    allows = None if server.access is None else ScrapeAccess(server.access.guard).allows
    port = MetricsPort(source.text, CONTENT_TYPE, index.encode(), allows)
    number = await port.start(server.network, host, settings.metrics_prom_exporter_port)
    stack.push_async_callback(port.close)
    shown = f"[{host}]" if ":" in host else host
    is_tls = isinstance(server.network, TlsNetwork) and server.network.takes_tls_only
    address = f"{'https' if is_tls else 'http'}://{shown}:{number}/metrics"
    log.info("metrics at %s", address)
    return address
