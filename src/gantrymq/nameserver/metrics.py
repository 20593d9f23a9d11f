"""Metrics of what a name server knows."""

from gantrymq.metrics import table
from gantrymq.metrics.metric import Samples
from gantrymq.nameserver.table import RouteTable


class RouteMetrics:
    """Brokers and topics."""

    def __init__(self, routes: RouteTable) -> None:
        self._routes = routes

    async def collect(self) -> Samples:
        yield table.BROKERS, [((cluster,), n) for cluster, n in self._routes.sizes().items()]
        yield table.ROUTED_TOPICS, [((), self._routes.topic_count)]
