"""Settings of metrics and logs, which brokers and name servers share; RocketMQ's names."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, Literal

import msgspec

from gantrymq.base.errors import ConfigError
from gantrymq.base.hidden import HIDDEN, repr_without

EXPORTERS: Final = ("DISABLE", "OTLP_GRPC", "PROM", "LOG")
"""In the order of RocketMQ's numbers, which are accepted as well."""
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_OTHER_LEVELS: Final = {"WARN": "WARNING", "FATAL": "CRITICAL", "TRACE": "DEBUG"}
"""How Java's loggers call some."""


_PACKAGE: Final = Path(__file__).parents[1]


class TelemetrySettings(msgspec.Struct, kw_only=True, rename="camel"):
    """What a server tells about itself, and how."""

    SECRET_FIELDS: ClassVar[tuple[str, ...]] = ("metrics_grpc_exporter_header",)
    """Not shown to people and tools; settings that extend these add their own."""

    # --- Metrics ---

    metrics_exporter_type: str = "DISABLE"
    """Who gets the metrics: PROM serves them to Prometheus over HTTP, OTLP_GRPC pushes them to a
    collector, LOG writes them to the log; DISABLE keeps them."""
    metrics_prom_exporter_port: int = 5557
    """The port of PROM; 0 takes a free one, and the start says which."""
    metrics_prom_exporter_host: str = ""
    """The local address on which that port is opened; empty stands for bindAddress, in RocketMQ
    for brokerIP1."""
    metrics_grpc_exporter_target: str = ""
    """The collector of OTLP_GRPC, as `http://host:4317`; without `http://` connections are TLS."""
    metrics_grpc_exporter_header: str = ""
    """Headers that go with each push, as `name:value,name:value`."""
    metric_grpc_exporter_time_out_in_mills: int = 3_000
    """Milliseconds that a push may take."""
    metric_grpc_exporter_interval_in_mills: int = 60_000
    """Milliseconds between two pushes."""
    metric_logging_exporter_interval_in_mills: int = 10_000
    """Milliseconds between two lines of LOG."""
    metrics_label: str = ""
    """Labels that all metrics get, as `name:value,name:value`."""
    metrics_in_delta: bool = False
    """OTLP_GRPC and LOG tell how much counters and histograms grew since the last time."""
    metrics_otel_cardinality_limit: int = 50_000
    """The most series of one metric; the others are left out, with a warning."""
    metrics_lag_per_queue: bool = False
    """The lag of groups is told for each queue besides: many series."""
    enable_stats_metrics: bool = True
    """The metrics of the server itself: permission, topics, groups, process, limits."""
    enable_request_metrics: bool = True
    """The metrics of messages that come and go."""
    enable_connection_metrics: bool = True
    """The metrics of connected producers and consumers."""
    enable_lag_and_dlq_metrics: bool = True
    """The metrics of groups: lag and dead letters."""
    enable_transaction_metrics: bool = True
    """The metrics of transactions."""
    enable_remoting_metrics: bool = True
    """The metrics of requests."""
    enable_message_store_metrics: bool = True
    """The metrics of the store, its copies and timer messages."""
    enable_pop_metrics: bool = True
    """The metrics of POP."""

    # --- Logs ---

    log_format: Literal["text", "json"] = "text"
    """Lines of the log as text, or each as one object of JSON."""
    log_level: str = "INFO"
    """From which level on lines are written: DEBUG, INFO, WARNING, ERROR or CRITICAL."""
    log_levels: str = ""
    """Other levels for parts of the server, as `store:DEBUG,remoting:WARNING`; a part is a package
    below `gantrymq`, or a module of it as `broker.announce`."""

    def __repr__(self) -> str:
        return repr_without(self, self.SECRET_FIELDS)


METRICS_KEYS: Final = frozenset(
    key
    for key in TelemetrySettings.__struct_encode_fields__
    if key.startswith("metric") or key.endswith("Metrics")
)
"""All keys about metrics."""
LOG_KEYS: Final = ("logFormat", "logLevel", "logLevels")
OURS_OF_LOGS: Final = dict.fromkeys(LOG_KEYS, "logback's files")
"""Keys that RocketMQ does not have, and what it has instead."""


def check_telemetry(settings: TelemetrySettings) -> None:
    """Bring values into their usual form; raises a ConfigError that names what is wrong."""
    given = settings.metrics_exporter_type.strip().upper()
    if given.isdecimal() and int(given) < len(EXPORTERS):
        given = EXPORTERS[int(given)]
    if given not in EXPORTERS:
        raise ConfigError(f"metricsExporterType={given}: write {' or '.join(EXPORTERS)}")
    settings.metrics_exporter_type = given
    if not 0 <= settings.metrics_prom_exporter_port <= 65_535:
        raise ConfigError("metricsPromExporterPort: write a number from 0 to 65535")
    if given == "OTLP_GRPC" and not settings.metrics_grpc_exporter_target.strip():
        raise ConfigError(
            "metricsExporterType=OTLP_GRPC: name the collector with "
            "metricsGrpcExporterTarget=http://host:4317"
        )
    for key, value in (
        ("metricGrpcExporterTimeOutInMills", settings.metric_grpc_exporter_time_out_in_mills),
        ("metricGrpcExporterIntervalInMills", settings.metric_grpc_exporter_interval_in_mills),
        (
            "metricLoggingExporterIntervalInMills",
            settings.metric_logging_exporter_interval_in_mills,
        ),
        ("metricsOtelCardinalityLimit", settings.metrics_otel_cardinality_limit),
    ):
        if value < 1:
            raise ConfigError(f"{key}={value}: write a number of at least 1")
    pairs_of("metricsLabel", settings.metrics_label)
    pairs_of("metricsGrpcExporterHeader", settings.metrics_grpc_exporter_header, shown=False)
    settings.log_level = _level("logLevel", settings.log_level)
    levels_of(settings)


def without_secrets(kind: type[TelemetrySettings], settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a kind of server as text, as people and tools may see them."""
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    secret = [key for name, key in names if name in kind.SECRET_FIELDS]
    return {**settings, **{key: HIDDEN for key in secret if settings.get(key)}}


def pairs_of(key: str, text: str, *, shown: bool = True) -> dict[str, str]:
    """`name:value,name:value` as a table; `shown` says whether an error may quote the text."""
    found = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, mark, value = item.partition(":")
        if not mark or not name.strip() or not value.strip():
            what = f"={text}" if shown else ""
            raise ConfigError(f"{key}{what}: write name:value, with commas between")
        found[name.strip()] = value.strip()
    return found


def levels_of(settings: TelemetrySettings) -> dict[str, int]:
    """The level of each part that has one of its own, by its name below `gantrymq`."""
    return {
        _part(part): logging.getLevelNamesMapping()[_level("logLevels", level)]
        for part, level in pairs_of("logLevels", settings.log_levels).items()
    }


def _part(name: str) -> str:
    """A package or module as it stands below `gantrymq`; raises ConfigError if there is none."""
    part = name.removeprefix("gantrymq.")
    path = _PACKAGE.joinpath(*part.split("."))
    if not path.is_dir() and not path.with_suffix(".py").is_file():
        raise ConfigError(f"logLevels={name}: gantrymq has no such part; write one as store")
    return part


def _level(key: str, text: str) -> str:
    found = text.strip().upper()
    found = _OTHER_LEVELS.get(found, found)
    if found not in LEVELS:
        raise ConfigError(f"{key}={text}: write {' or '.join(LEVELS)}")
    return found
