"""A whole cluster in this process, with the real name server and broker."""

import asyncio
import random
import shutil
import tempfile
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

import msgspec

from gantrymq.base.clock import SystemClock, WallClock
from gantrymq.base.disk import Disk, OsDisk
from gantrymq.base.network import Network, TcpNetwork
from gantrymq.base.offload import InlineOffload, Offload
from gantrymq.broker.app import Broker, Ports, run_broker
from gantrymq.broker.settings.config import OTHER_PORTS, BrokerConfig
from gantrymq.client.admin.admin import Admin
from gantrymq.client.consume.pop.simple_consumer import SimpleConsumer
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.produce.producer import Producer
from gantrymq.nameserver.app import NameServer, run_nameserver
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.store.log.syncer import InlineSyncer, Syncer
from gantrymq.testing.clock import LoopClock, ShiftedClock
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import VirtualLoop
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"
GROUP = "RaftNode00"
SMALL = {
    "store_profile": "dev",
    "mapped_file_size_commit_log": 4 * 1024 * 1024,
    "mapped_file_size_consume_queue": 20 * 10_000,
    "max_hash_slot_num": 5_000,
    "max_index_num": 20_000,
    "log_directory": "",
}
"""Files of a few MiB: a cluster is up in milliseconds."""


class Cluster:
    """Name servers and brokers that run as long as the `async with` block.

    `memory=True` puts network and disks in memory; in a `VirtualLoop` time is virtual as well. With
    `slaves` each broker has so many slaves: `broker-a-s1` is the first one of `broker-a`. With
    `members` there is one broker instead, a raft group of so many members: `n0`, `n1`, ...
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        slaves: int = 0,
        members: int = 0,
        nameservers: int = 1,
        memory: bool = False,
        clock: WallClock | None = None,
        seed: int = 0,
        syncer: Syncer | None = None,
        offload: Offload | None = None,
        disk: Disk | None = None,
        **settings: Any,
    ) -> None:
        self._counts = (nameservers, 0 if members else brokers, slaves)
        self._members = [f"n{number}" for number in range(members)]
        self._memory, self._settings, self._syncer = memory, settings, syncer
        self._offload = offload or InlineOffload()
        self.rng = random.Random(seed)
        self.network: Network = MemoryNetwork(self.rng) if memory else TcpNetwork()
        self.disk: Disk = disk or (MemoryDisk() if memory else OsDisk())
        """The first broker's, or everybody's when it was passed in or is a real one."""
        self._clock = clock
        self._stack = AsyncExitStack()
        self._root = ""
        self._nameservers: list[NameServer] = []
        self._running: dict[str, tuple[AsyncExitStack, Broker]] = {}
        self._configs: dict[str, BrokerConfig] = {}
        self._disks: dict[str, Disk] = {}
        """A broker's own disk in memory, so that killing one leaves the others alone."""
        self._own_disks = memory and disk is None
        self._clocks: dict[str, ShiftedClock] = {}
        self._syncers: dict[str, InlineSyncer] = {}
        self._taken: list[int] = []
        """Raft ports: all are chosen before the first one is opened."""

    # life

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        if self._clock is None:
            self._clock = LoopClock(loop) if isinstance(loop, VirtualLoop) else SystemClock()
        if self._memory:
            self._root = "/cluster"
        else:
            self._root = tempfile.mkdtemp(prefix="gantrymq-")
            self._stack.callback(shutil.rmtree, self._root, ignore_errors=True)
        try:
            for number in range(self._counts[0]):
                await self._start_nameserver(number)
            for number in range(self._counts[1]):
                await self._add_broker(f"broker-{chr(ord('a') + number)}")
                for slave in range(1, self._counts[2] + 1):
                    await self._add_broker(f"broker-{chr(ord('a') + number)}", slave)
            peers = ";".join(
                f"{name}-{self.host_of(name)}:{self._raft_port()}" for name in self._members
            )
            for name in self._members:
                await self._add_member(name, peers)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in list(self._running):
            await self.stop_broker(name)
        await self._stack.aclose()

    async def _start_nameserver(self, number: int) -> None:
        config = NameServerConfig(
            listen_port=0,
            bind_address=HOST,
            kv_config_path=f"{self._root}/namesrv-{number}/kvConfig.json",
            config_store_path=f"{self._root}/namesrv-{number}/namesrv.properties",
        )
        disk = MemoryDisk() if self._own_disks else self.disk
        server = run_nameserver(
            config, network=self.network, disk=disk, clock=self._clock, offload=InlineOffload()
        )
        self._nameservers.append(await self._stack.enter_async_context(server))

    async def _add_broker(self, broker_name: str, slave: int = 0) -> None:
        name = f"{broker_name}-s{slave}" if slave else broker_name
        role: dict[str, Any] = {"broker_role": "SLAVE", "broker_id": slave} if slave else {}
        await self._add(name, broker_name, role)

    async def _add_member(self, name: str, peers: str) -> None:
        role = {
            "enable_d_leger_commit_log": True,
            "d_leger_group": GROUP,
            "d_leger_peers": peers,
            "d_leger_self_id": name,
            "broker_ip1": self.host_of(name),
            "bind_address": self.host_of(name),
        }
        await self._add(name, GROUP, role)

    def host_of(self, name: str) -> str:
        """The host of a broker: members of a raft group in memory have one each."""
        return f"10.0.0.{1 + int(name[1:])}" if self._memory and name in self._members else HOST

    def _network_of(self, name: str) -> Network:
        host = self.host_of(name)
        if host == HOST or not isinstance(self.network, MemoryNetwork):
            return self.network
        self.network.bring_up(host)
        return self.network.at(host)

    def _raft_port(self) -> int:
        port = self.network.free_port(HOST)
        while port in self._taken:
            port = self.network.free_port(HOST)
        self._taken.append(port)
        return port

    async def _add(self, name: str, broker_name: str, role: dict[str, Any]) -> None:
        self._configs[name] = BrokerConfig(
            **{
                **SMALL,
                "broker_name": broker_name,
                "broker_ip1": HOST,
                "bind_address": HOST,
                "listen_port": self.network.free_port(HOST, OTHER_PORTS),
                "namesrv_addr": self.namesrv,
                "store_path_root_dir": f"{self._root}/{name}",
                **self._settings,
                **role,
            }
        )
        self._disks[name] = MemoryDisk() if self._own_disks and self._disks else self.disk
        await self.start_broker(name)

    async def start_broker(self, name: str = "broker-a") -> Broker:
        """Start a broker again that was stopped or killed."""
        assert self._clock is not None
        stack = AsyncExitStack()
        ports = Ports(
            self._network_of(name),
            self._disks[name],
            self.clock_of(name),
            self._offload,
            random.Random(self.rng.random()),
            self._syncer or self.syncer_of(name),
        )
        broker = await stack.enter_async_context(run_broker(self._configs[name], ports))
        self._running[name] = (stack, broker)
        await broker.announced.wait()
        return broker

    def reconfigure(self, name: str, **settings: Any) -> None:
        """Change settings of a broker that is stopped; they are in force at its next start."""
        self._configs[name] = msgspec.structs.replace(self._configs[name], **settings)

    def config_of(self, name: str) -> BrokerConfig:
        """The settings of a broker, running or not."""
        return self._configs[name]

    def disk_of(self, name: str) -> MemoryDisk:
        """The disk in memory of a broker, to make it fail."""
        disk = self._disks[name]
        assert isinstance(disk, MemoryDisk), "a real disk does not fail on demand"
        return disk

    def clock_of(self, name: str) -> ShiftedClock:
        """The wall clock of a broker's machine, to set it wrong."""
        assert self._clock is not None, "the cluster is not running"
        return self._clocks.setdefault(name, ShiftedClock(self._clock))

    def syncer_of(self, name: str) -> InlineSyncer:
        """What syncs the disk of a broker, to make it slow; unless the cluster was given one."""
        return self._syncers.setdefault(name, InlineSyncer())

    def empty_disk(self, name: str) -> None:
        """Give a stopped broker an empty disk, as after the loss of its machine."""
        assert self._own_disks, "only a broker with a disk of its own can lose it"
        self._disks[name] = MemoryDisk()

    async def stop_broker(self, name: str = "broker-a") -> None:
        """Stop a broker cleanly; its files stay."""
        stack, _ = self._running.pop(name)
        await stack.aclose()

    async def kill_broker(self, name: str = "broker-a", *, power_cut: bool = False) -> None:
        """End a broker as `kill -9` does, or as a power cut does, which loses unsynced writes.

        Only with `memory=True`. Its connections break without a goodbye, and `start_broker` finds
        the disk as it was left.
        """
        disk, network = self._disks[name], self.network
        assert isinstance(disk, MemoryDisk), "only a broker on its own disk in memory can be killed"
        assert isinstance(network, MemoryNetwork)
        stack, broker = self._running.pop(name)
        left = disk.image(self.rng) if power_cut else disk.after_kill()
        if self.disk is disk:
            self.disk = left
        self._disks[name] = left
        disk.fault = lambda operation, path: OSError(f"{operation} of a killed broker")
        config = broker.config
        if self.host_of(name) != HOST:
            network.take_down(self.host_of(name))
        for port in (config.listen_port, config.fast_listen_port, config.ha_listen_port):
            network.stop_listening(HOST, port)
            network.cut_port(port)
        with suppress(OSError):
            await stack.aclose()

    @property
    def leader(self) -> str | None:
        """The member of the raft group that serves as its leader, the latest if two think so."""
        led = [
            (broker.node.position.term, name)
            for name, (_, broker) in self._running.items()
            if broker.node is not None and broker.node.position.leads
        ]
        return max(led)[1] if led else None

    async def wait_for_leader(self, *, other_than: str | None = None) -> str:
        """The leader of the raft group, once there is one that name servers know."""
        while True:
            name = self.leader
            if name is not None and name != other_than:
                broker = self.broker(name)
                if not broker.config.is_slave and broker.role_is_announced:
                    return name
            await asyncio.sleep(0.01)

    @property
    def running(self) -> list[str]:
        """The names of the brokers that are up."""
        return list(self._running)

    # what tests use

    @property
    def namesrv(self) -> str:
        """The name servers' addresses, as every client takes them."""
        return ";".join(f"{HOST}:{server.port}" for server in self._nameservers)

    @property
    def clock(self) -> WallClock:
        assert self._clock is not None, "the cluster is not running"
        return self._clock

    def broker(self, name: str = "broker-a") -> Broker:
        return self._running[name][1]

    @property
    def _ports(self) -> dict[str, Any]:
        return {"network": self.network, "clock": self._clock, "rng": self.rng}

    def producer(self, group: str = "test-producer", **options: Any) -> Producer:
        """A producer on this cluster's network and clock."""
        return Producer(self.namesrv, group=group, **self._ports, **options)

    def consumer(self, group: str = "test-consumer", **options: Any) -> Consumer:
        return Consumer(self.namesrv, group=group, **self._ports, **options)

    def simple_consumer(self, group: str = "test-simple", **options: Any) -> SimpleConsumer:
        return SimpleConsumer(self.namesrv, group=group, **self._ports, **options)

    def admin(self, **options: Any) -> Admin:
        return Admin(self.namesrv, **self._ports, **options)

    async def create_topic(self, name: str, queues: int = 4) -> None:
        """Create a topic on every broker; the name servers know it when this returns."""
        async with self.admin() as admin:
            await admin.create_topic(name, queues=queues)
