"""What every part of the administration shares: the brokers and their addresses."""

import random
from collections.abc import Iterable

from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle, RunningPart
from gantrymq.client.core.options import ClientOptions, with_namesrv
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import ClusterInfo
from gantrymq.protocol.headers.base import Nothing


class AdminBase(Lifecycle[RunningPart]):
    """A client that knows which brokers there are."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        client: ClientOptions | None = None,
        hooks: Iterable[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        ports = ClientPorts(network, clock, rng)
        super().__init__("the admin client", with_namesrv(client, namesrv), ports, hooks)

    async def _open(self, instance: Instance) -> RunningPart:
        return RunningPart(instance)

    async def _shut(self, running: RunningPart) -> None:
        """Nothing runs beside the instance."""

    async def cluster(self) -> ClusterInfo:
        """All brokers by name, and which cluster each belongs to."""
        _, answer = await self.instance.call_namesrv(calls.GET_BROKER_CLUSTER_INFO, Nothing())
        return fastjson.load_as(answer.body, ClusterInfo)

    async def masters(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, str]:
        """Broker name to master address: of one broker, of one cluster, or of all."""
        members = await self.members(cluster=cluster, broker=broker)
        found = {name: addresses[0] for name, addresses in members.items() if 0 in addresses}
        if not found:
            raise ClientError(f"no master among {', '.join(members) or 'no brokers at all'}")
        return found

    async def members(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, dict[int, str]]:
        """Broker name to the addresses of all its members, by id."""
        info = await self.cluster()
        if cluster is not None and cluster not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise ClientError(f"no cluster {cluster!r}; known: {known}")
        names = info.cluster_addr_table[cluster] if cluster else list(info.broker_addr_table)
        if broker is not None and broker not in names:
            raise ClientError(f"no broker {broker!r}; known: {', '.join(sorted(names)) or 'none'}")
        return {
            name: {int(key): value for key, value in data.broker_addrs.items()}
            for name, data in sorted(info.broker_addr_table.items())
            if name in names and broker in (None, name)
        }

    async def broker_name_at(self, address: str) -> str:
        """The name of the broker that is registered with an address; else a ClientError."""
        info = await self.cluster()
        for name, data in info.broker_addr_table.items():
            if address in data.broker_addrs.values():
                return name
        known = sorted(
            place
            for data in info.broker_addr_table.values()
            for place in data.broker_addrs.values()
        )
        raise ClientError(f"no broker at {address!r}; known: {', '.join(known) or 'none'}")

    async def _addresses_of(self, topic: str) -> list[str]:
        """One member of each broker that has the topic, the master where there is one."""
        route = await self.instance.routes.refresh(topic)
        routes = self.instance.routes
        return [routes.address_of(data.broker_name, any_id=True) for data in route.broker_datas]
