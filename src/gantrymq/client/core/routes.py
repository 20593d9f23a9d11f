"""The routes of topics: asked from a name server, refreshed, and turned into queues."""

import logging
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import BrokerUnknown, NoRoute
from gantrymq.client.core.shared_work import SharedWork
from gantrymq.model import READ, RETRY_PREFIX, WRITE, Queue, QueueData, Route

log = logging.getLogger(__name__)

Fetch = Callable[[str], Awaitable[Route]]


def publish_queues(route: Route, topic: str) -> list[Queue]:
    """The queues a producer may send to, by broker name and id.

    An order topic's fixed list takes precedence: its queues stay even while their broker is down,
    so that a key always has the same queue.
    """
    if route.order_topic_conf:
        return _ordered_queues(route.order_topic_conf, topic)
    masters = {data.broker_name for data in route.broker_datas if data.master is not None}
    return [
        Queue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.perm & WRITE and data.broker_name in masters
        for queue_id in range(data.write_queue_nums)
    ]


def lacks_masters(route: Route) -> bool:
    """Whether a topic has writable queues, but only of brokers that are without a master."""
    writable = {data.broker_name for data in route.queue_datas if data.perm & WRITE}
    masters = {data.broker_name for data in route.broker_datas if data.master is not None}
    return bool(writable) and not writable & masters


def subscribe_queues(route: Route, topic: str) -> list[Queue]:
    """The queues a consumer may read, sorted."""
    return [
        Queue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.perm & READ
        for queue_id in range(data.read_queue_nums)
    ]


def _ordered_queues(conf: str, topic: str) -> list[Queue]:
    queues = []
    for part in conf.split(";"):
        broker_name, _, count = part.strip().rpartition(":")
        if broker_name and count.isdigit():
            queues += [Queue(topic, broker_name, queue_id) for queue_id in range(int(count))]
    return queues


def from_template(template: Route, queues_max: int) -> Route:
    """The route that a topic will have when a broker creates it at the first send."""
    datas = [
        msgspec.structs.replace(
            data,
            read_queue_nums=min(queues_max, data.read_queue_nums),
            write_queue_nums=min(queues_max, data.write_queue_nums),
        )
        for data in template.queue_datas
        if data.perm & 1
    ]
    return Route(broker_datas=template.broker_datas, queue_datas=datas)


def broker_table(routes: Iterable[Route]) -> dict[str, dict[int, str]]:
    """Broker name to its addresses by id, over all routes; the later route wins."""
    table: dict[str, dict[int, str]] = {}
    for route in routes:
        for data in route.broker_datas:
            table[data.broker_name] = {
                int(broker_id): address for broker_id, address in data.broker_addrs.items()
            }
    return table


class Routes:
    """The routes of every topic this client has asked for."""

    publish_queues = staticmethod(publish_queues)
    subscribe_queues = staticmethod(subscribe_queues)

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._routes: dict[str, Route] = {}
        self._provisional: dict[str, None] = {}
        self._fetching: SharedWork[Route] = SharedWork("the routes of a client")
        self._brokers: dict[str, dict[int, str]] = {}
        self.failures: dict[str, str] = {}
        """Why a topic's route could not be had when it was last asked for."""
        self.version = 0
        """Rises with every change, so that users know when to look again."""
        self.on_change: list[Callable[[], None]] = []

    # asking

    async def get(self, topic: str) -> Route:
        """The topic's route; raises NoRoute, or the error of the name servers."""
        route = self._routes.get(topic)
        if route is not None and topic not in self._provisional:
            return route
        return await self.refresh(topic)

    def cached(self, topic: str) -> Route | None:
        """The cached route, also a provisional one; None without one."""
        return self._routes.get(topic)

    async def get_for_sending(self, topic: str, template_topic: str, queues_max: int) -> Route:
        """The topic's route, or one from the template topic when the topic does not exist yet."""
        route = self._routes.get(topic)
        if route is not None:
            return route
        try:
            return await self.refresh(topic)
        except NoRoute:
            if topic.startswith(RETRY_PREFIX):
                raise
        try:
            template = await self.get(template_topic)
        except NoRoute as error:
            raise NoRoute(topic, f"nor is there one for {template_topic}") from error
        route = from_template(template, queues_max)
        if not publish_queues(route, topic):
            raise NoRoute(topic, f"{template_topic} lets no broker create topics")
        self._provisional[topic] = None
        self._set(topic, route)
        return route

    async def refresh(self, topic: str) -> Route:
        """Ask a name server now. Callers for the same topic share one request."""
        return await self._fetching.run(topic, lambda: self._refresh(topic))

    async def _refresh(self, topic: str) -> Route:
        try:
            route = await self._fetch(topic)
        except GantryError as error:
            self.failures[topic] = str(error)
            raise
        self.failures.pop(topic, None)
        self._provisional.pop(topic, None)
        self._set(topic, route)
        return route

    async def refresh_all(self) -> None:
        """Refresh the routes of all topics in use; one that cannot be fetched stays as it is."""
        for topic in list(self._routes):
            try:
                await self.refresh(topic)
            except GantryError as error:
                if topic not in self._provisional:
                    log.warning("route of %s not refreshed: %s", topic, error)

    async def close(self) -> None:
        """Cancel requests that are under way."""
        await self._fetching.close()

    def _set(self, topic: str, route: Route) -> None:
        if self._routes.get(topic) == route:
            return
        # The newest route comes last in the table, so that its broker addresses win. Only a route
        # that replaces another one may take a broker away: a tool asks for thousands of new ones.
        replaces = self._routes.pop(topic, None) is not None
        self._routes[topic] = route
        if replaces:
            self._brokers = broker_table(self._routes.values())
        else:
            self._brokers |= broker_table([route])
        self.version += 1
        for listener in list(self.on_change):
            listener()

    def drop(self, topic: str) -> None:
        """Forget a topic that was deleted."""
        if self._routes.pop(topic, None) is not None:
            self._provisional.pop(topic, None)
            self._brokers = broker_table(self._routes.values())
            self.version += 1

    # brokers

    def address_of(self, broker_name: str, broker_id: int = 0, any_id: bool = False) -> str:
        """A broker's address. With `any_id`, if that id is missing, the next id or the smallest."""
        addresses = self._brokers.get(broker_name, {})
        if broker_id in addresses:
            return addresses[broker_id]
        if any_id and addresses:
            return addresses.get(broker_id + 1) or addresses[min(addresses)]
        known = f"it has ids {sorted(addresses)}" if addresses else "no route names it"
        raise BrokerUnknown(f"broker {broker_name!r} has no member {broker_id}: {known}")

    def has_master(self, broker_name: str) -> bool:
        """Whether a route names the master of a broker."""
        return 0 in self._brokers.get(broker_name, {})

    def name_at(self, address: str) -> str:
        """The broker that answers at an address; empty if no route names it."""
        found = (name for name, members in self._brokers.items() if address in members.values())
        return next(found, "")

    def all_addresses(self, masters_only: bool = False) -> list[str]:
        """Every address in every route, by broker name."""
        return list(
            dict.fromkeys(
                address
                for _, addresses in sorted(self._brokers.items())
                for broker_id, address in sorted(addresses.items())
                if broker_id == 0 or not masters_only
            )
        )

    @property
    def topics(self) -> list[str]:
        return list(self._routes)


def queue_data_of(route: Route, broker_name: str) -> QueueData | None:
    """The queue data of one broker in a route; None without any."""
    return next((data for data in route.queue_datas if data.broker_name == broker_name), None)
