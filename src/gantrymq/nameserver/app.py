"""The name server's parts, put together."""

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gantrymq.access.rights import NAME_SERVER_RIGHTS
from gantrymq.access.rule_files import WATCH_SECONDS
from gantrymq.access.server_access import ServerAccess, open_access
from gantrymq.base.background import Background
from gantrymq.base.clock import SystemClock, WallClock
from gantrymq.base.disk import Disk, OsDisk
from gantrymq.base.network import Network, TcpNetwork, local_address
from gantrymq.base.offload import Offload, ThreadOffload
from gantrymq.base.own_file import with_saved
from gantrymq.metrics.exporter import MetricsServer, check_exporter, export_metrics
from gantrymq.metrics.process import ProcessMetrics, RequestMetrics
from gantrymq.nameserver.config import UNCHANGEABLE, NameServerConfig
from gantrymq.nameserver.handlers import NameServerHandlers
from gantrymq.nameserver.kv import KvConfig
from gantrymq.nameserver.live_settings import NameServerSettings
from gantrymq.nameserver.metrics import RouteMetrics
from gantrymq.nameserver.table import RouteTable
from gantrymq.remoting.admission import ServerAdmission
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import Server

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NameServer:
    """A running name server."""

    port: int
    table: RouteTable
    config: NameServerConfig
    metrics_address: str | None = None
    """Where Prometheus reads its metrics; None if it does not."""


@asynccontextmanager
async def run_nameserver(
    config: NameServerConfig,
    *,
    network: Network | None = None,
    disk: Disk | None = None,
    clock: WallClock | None = None,
    offload: Offload | None = None,
    stronger: Collection[str] = (),
) -> AsyncIterator[NameServer]:
    """Serve until the block is left; `stronger` settings override those that were saved."""
    clock, disk = clock or SystemClock(), disk or OsDisk()
    threads = ThreadOffload(1) if offload is None else None
    offload = offload or threads
    assert offload is not None
    config = with_saved(
        config, disk, config.config_store_path, fixed=UNCHANGEABLE, stronger=stronger
    )
    check_exporter(config)
    access = _open_access(config, disk, offload, clock)
    table = RouteTable()
    kv = KvConfig(disk, offload, config.kv_config_path)
    handlers = NameServerHandlers(
        table, kv, NameServerSettings(config, disk, offload), config, clock
    )

    def forget(connection: Connection) -> None:
        for address in table.drop_connection(connection):
            log.warning("broker %s dropped: its connection closed", address)

    routes = handlers.routes(None if access is None else access.guard)
    network, admission = network or TcpNetwork(), ServerAdmission(config)
    server = Server(routes, network, on_lost=forget, admission=admission)
    port = await server.start(config.bind_address, config.listen_port)
    background = Background(f"the name server on port {port}")
    background.every(
        lambda: config.scan_not_active_broker_interval / 1000,
        lambda: _expire_silent(table, clock),
        may_be_late=True,
    )
    if access is not None and access.files is not None:
        background.every(WATCH_SECONDS, access.files.refresh)
    metrics = MetricsServer(
        config,
        config.bind_address,
        {"cluster": "", "node_type": "nameserver", "node_id": f"{_own_host(config)}:{port}"},
        ProcessMetrics(lambda: "NAMESERVER", clock.now_ms()),
        lambda: (RouteMetrics(table).collect, RequestMetrics(admission).collect),
        network,
        clock,
        access,
    )
    try:
        async with export_metrics(metrics) as address:
            yield NameServer(port, table, config, address)
    finally:
        await background.close()
        await server.stop()
        if threads is not None:
            threads.close()


def _own_host(config: NameServerConfig) -> str:
    return local_address() if config.bind_address == "0.0.0.0" else config.bind_address


def _open_access(
    config: NameServerConfig, disk: Disk, offload: Offload, clock: WallClock
) -> ServerAccess | None:
    if not config.acl_enable:
        return None
    return open_access(
        NAME_SERVER_RIGHTS,
        file=config.acl_file,
        home=config.rocketmq_home,
        disk=disk,
        offload=offload,
        clock=clock,
    )


async def _expire_silent(table: RouteTable, clock: WallClock) -> None:
    for address in table.expire(clock.now_ms()):
        log.warning("broker %s dropped: silent for too long", address)
