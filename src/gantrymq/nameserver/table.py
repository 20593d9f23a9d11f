"""The route registry: topics, brokers, clusters, last heartbeats. Pure: time is an argument."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from gantrymq.model import (
    WRITE,
    BrokerData,
    DataVersion,
    QueueData,
    Route,
    TopicConfig,
)
from gantrymq.protocol.bodies import ClusterInfo

SILENT_MS_MAX = 120_000
UNIT_FLAG, UNIT_SUB_FLAG = 1, 2


@dataclass(frozen=True)
class Registration:
    """The registration of one broker."""

    cluster: str
    name: str
    address: str
    broker_id: int
    ha_address: str = ""
    silent_ms_max: int = SILENT_MS_MAX
    acting_master: bool = False
    version: DataVersion = field(default_factory=DataVersion)
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    filter_servers: tuple[str, ...] = ()


@dataclass
class Alive:
    """A live broker, with its last heartbeat."""

    registration: Registration
    heard_ms: int
    connection: Hashable


class RegistrationRefused(Exception):
    """The registration contradicts the registry; the text says how."""


class RouteTable:
    """The route registry. Brokers change it, and the scan for silent ones."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, QueueData]] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, dict[str, None]] = {}
        self._alive: dict[str, Alive] = {}
        self.revision = 0
        """Grows whenever a route may have changed; a registration with nothing new keeps it."""

    def is_new(self, address: str) -> bool:
        """Whether no broker is registered under an address."""
        return address not in self._alive

    @property
    def size(self) -> int:
        """How many brokers are registered, slaves among them."""
        return len(self._alive)

    @property
    def topic_count(self) -> int:
        return len(self._queues)

    def sizes(self) -> dict[str, int]:
        """How many brokers each cluster has, slaves among them."""
        sizes = dict.fromkeys(self._clusters, 0)
        for alive in self._alive.values():
            sizes[alive.registration.cluster] = sizes.get(alive.registration.cluster, 0) + 1
        return sizes

    # changes

    def register(
        self, new: Registration, connection: Hashable, now_ms: int
    ) -> tuple[str | None, str | None]:
        """Register a broker; returns (master address, master's HA address) for a slave."""
        broker = self._brokers.get(new.name)
        known = broker.broker_addrs if broker is not None else {}
        if str(new.broker_id) not in known and len(new.topics) == 1:
            # A first registration has all topics; a single topic is an increment, which is refused.
            raise RegistrationRefused("register broker failed")
        previous = self._alive.get(new.address)
        self._clusters.setdefault(new.cluster, {})[new.name] = None
        if broker is None:
            broker = BrokerData(broker_addrs={}, broker_name=new.name, cluster=new.cluster)
            self._brokers[new.name] = broker
        acted = broker.enable_acting_master
        broker.enable_acting_master = new.acting_master
        if self._is_outdated(new, broker.broker_addrs.get(str(new.broker_id))):
            self._alive.pop(new.address, None)
            self.revision += 1
            return None, None
        addresses = dict(broker.broker_addrs)
        first = str(new.broker_id) not in addresses
        for other, address in list(broker.broker_addrs.items()):
            if address == new.address and other != str(new.broker_id):
                del broker.broker_addrs[other]
        broker.broker_addrs[str(new.broker_id)] = new.address
        changed = previous is None or previous.registration.version != new.version
        if new.broker_id == 0 and (first or changed):
            for topic in new.topics.values():
                self._offer(new.name, topic)
        if (
            changed
            or addresses != broker.broker_addrs
            or acted != new.acting_master
            or (previous and previous.registration.filter_servers != new.filter_servers)
        ):
            self.revision += 1
        self._alive[new.address] = Alive(new, now_ms, connection)
        return self._master_of(broker) if new.broker_id != 0 else (None, None)

    def _is_outdated(self, new: Registration, holder: str | None) -> bool:
        """Whether another address has this id with a later state: a raft leader of a later term."""
        other = self._alive.get(holder) if holder not in (None, new.address) else None
        if other is None:
            return False
        return other.registration.version.state_version > new.version.state_version

    def _offer(self, broker: str, topic: TopicConfig) -> None:
        self._queues.setdefault(topic.topic_name, {})[broker] = QueueData(
            broker_name=broker,
            perm=topic.perm,
            read_queue_nums=topic.read_queue_nums,
            topic_sys_flag=topic.topic_sys_flag,
            write_queue_nums=topic.write_queue_nums,
        )

    def _master_of(self, broker: BrokerData) -> tuple[str | None, str | None]:
        address = broker.master
        alive = self._alive.get(address) if address is not None else None
        return (address, alive.registration.ha_address) if alive else (None, None)

    def unregister(self, name: str, address: str, broker_id: int | None = None) -> None:
        """Remove an address; with a broker's last address its queues, too."""
        self.revision += 1
        self._alive.pop(address, None)
        broker = self._brokers.get(name)
        if broker is None:
            return
        for known, value in list(broker.broker_addrs.items()):
            if value == address and (broker_id is None or known == str(broker_id)):
                del broker.broker_addrs[known]
                self._list_other(broker, known)
        if not broker.broker_addrs:
            del self._brokers[name]
            self._forget_queues(name)
            for cluster, names in list(self._clusters.items()):
                names.pop(name, None)
                if not names:
                    del self._clusters[cluster]

    def _list_other(self, broker: BrokerData, broker_id: str) -> None:
        """List another live broker with the same name and id, whose place the removed one took."""
        for alive in self._alive.values():
            other = alive.registration
            if (other.name, str(other.broker_id)) == (broker.broker_name, broker_id):
                broker.broker_addrs[broker_id] = other.address

    def _forget_queues(self, broker: str) -> None:
        for topic, queues in list(self._queues.items()):
            queues.pop(broker, None)
            if not queues:
                del self._queues[topic]

    def _drop(self, alive: Alive) -> str:
        self.unregister(alive.registration.name, alive.registration.address)
        return alive.registration.address

    def drop_connection(self, connection: Hashable) -> list[str]:
        """Remove the brokers of a closed connection; returns their addresses."""
        gone = [alive for alive in self._alive.values() if alive.connection == connection]
        return [self._drop(alive) for alive in gone]

    def expire(self, now_ms: int) -> list[str]:
        """Remove the brokers that were silent for too long; returns their addresses."""
        gone = [
            alive
            for alive in self._alive.values()
            if alive.heard_ms + alive.registration.silent_ms_max < now_ms
        ]
        return [self._drop(alive) for alive in gone]

    def heard(self, address: str, now_ms: int) -> None:
        """Record a heartbeat."""
        alive = self._alive.get(address)
        if alive is not None:
            alive.heard_ms = now_ms

    def version_of(self, address: str) -> DataVersion | None:
        alive = self._alive.get(address)
        return alive.registration.version if alive is not None else None

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Delete a topic, everywhere or in one cluster."""
        self.revision += 1
        queues = self._queues.get(topic, {})
        for name in list(queues):
            if not cluster or name in self._clusters.get(cluster, {}):
                del queues[name]
        if not queues:
            self._queues.pop(topic, None)

    def add_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """Register a topic for an operator; unknown brokers are left out."""
        self.revision += 1
        known = {data.broker_name: data for data in queues if data.broker_name in self._brokers}
        if known:
            self._queues.setdefault(topic, {}).update(known)

    def set_write(self, broker: str, allowed: bool) -> int:
        """Set or clear the write bit of all queues of a broker; returns how many topics it has."""
        self.revision += 1
        count = 0
        for queues in self._queues.values():
            data = queues.get(broker)
            if data is not None:
                data.perm = data.perm | WRITE if allowed else data.perm & ~WRITE
                count += 1
        return count

    # questions

    def route(self, topic: str) -> Route | None:
        """The route of a topic; None unless both queues and a broker are known."""
        queues = self._queues.get(topic)
        if not queues:
            return None
        brokers = [self._brokers[name] for name in queues if name in self._brokers]
        if not brokers:
            return None
        servers = {
            address: list(self._alive[address].registration.filter_servers)
            for broker in brokers
            for address in broker.broker_addrs.values()
            if address in self._alive and self._alive[address].registration.filter_servers
        }
        return Route(
            broker_datas=brokers, queue_datas=list(queues.values()), filter_server_table=servers
        )

    def cluster_info(self) -> ClusterInfo:
        return ClusterInfo(
            broker_addr_table=self._brokers,
            cluster_addr_table={name: list(members) for name, members in self._clusters.items()},
        )

    def topics(self) -> list[str]:
        return list(self._queues)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        members = self._clusters.get(cluster, {})
        return [topic for topic, queues in self._queues.items() if members.keys() & queues.keys()]

    def topics_by_flag(self, wanted: Callable[[int], bool]) -> list[str]:
        """Topics whose first queue data has the wanted unit flags."""
        found = []
        for topic, queues in self._queues.items():
            first = next(iter(queues.values()))
            if wanted(first.topic_sys_flag):
                found.append(topic)
        return found

    def system_names(self) -> tuple[list[str], str | None]:
        """The names of clusters and brokers, which are topics, too; and any broker's address."""
        names = dict.fromkeys(self._clusters)
        for members in self._clusters.values():
            names |= dict.fromkeys(members)
        addresses = (a for b in self._brokers.values() for a in b.broker_addrs.values())
        return list(names), next(addresses, None)

    def members(self, name: str) -> BrokerData | None:
        return self._brokers.get(name)
