"""Every workload by its name. Each is a function from the run's scale to measured rows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.rows import Row


@dataclass(frozen=True)
class Run:
    """How this run goes."""

    quick: bool = False
    profile: Path | None = None
    """Where a broker that is profiled leaves its figures."""

    def scaled(self, count: int) -> int:
        """A tenth of the work when it must be quick."""
        return count // 10 if self.quick else count


Workload = Callable[[Run], list[Row]]


def all_workloads() -> dict[str, Workload]:
    """In the order in which they run."""
    from bench.workloads import (
        console,
        copies,
        crowd,
        filtering,
        flushing,
        growth,
        java_drivers,
        limit,
        name_servers,
        operators,
        overload,
        peers,
        python_clients,
        raft_groups,
        reading,
        recovery,
        resources,
        securing,
        sending,
        spark_archive,
        spark_sink,
        spark_store,
        spark_wire,
        transactions,
        waiting,
    )

    return {
        "start": resources.start,
        "memory": resources.memory,
        "send-json": sending.json_headers,
        "send-binary": sending.binary_headers,
        "send-secured": securing.send_secured,
        "overload": overload.overload,
        "two-brokers": sending.two_brokers,
        "send-client": sending.through_the_client,
        "send-json-pure": sending.json_headers_pure,
        "send-binary-pure": sending.binary_headers_pure,
        "copies": copies.copies,
        "raft": raft_groups.raft,
        "failover": raft_groups.failover,
        "transactions": transactions.transactions,
        "backlog-walk": reading.walked,
        "backlog-consumer": reading.consumed,
        "ordered": reading.ordered,
        "recovery": recovery.recovery,
        "recovery-killed": recovery.killed,
        "group-commit": flushing.group_commit,
        "real-disk": flushing.real_disk,
        "sync-under-load": flushing.under_load,
        "timers": waiting.timers,
        "sql-filter": filtering.sql_filter,
        "spark-store": spark_store.scan,
        "spark-arrow": spark_store.arrow,
        "spark-audit": spark_store.audit,
        "spark-broker": spark_wire.scan,
        "spark-trigger": spark_wire.trigger,
        "spark-archive": spark_archive.archive,
        "spark-sink": spark_sink.write,
        "growth": growth.growth,
        "crowd": crowd.crowd,
        "operators": operators.operators,
        "console": console.console,
        "routes": name_servers.routes,
        "registrations": name_servers.registrations,
        "peers": peers.peers,
        "peers-flushed": peers.flushed,
        "filters": filtering.filters,
        "java-drivers": java_drivers.java_drivers,
        "limit": limit.limit,
        "python-clients-sends": python_clients.sends,
        "python-clients-tasks": python_clients.tasks,
        "python-clients-consumes": python_clients.consumes,
    }
