"""Publishing, put together: the ledger of epochs, its journal, and the press."""

from dataclasses import dataclass

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.broker.config import BrokerConfig
from gantrymq.broker.handlers.publishing import PublishHandler
from gantrymq.broker.policy import Policy
from gantrymq.broker.publishing.journal import Journal
from gantrymq.broker.publishing.ledger import Ledger
from gantrymq.broker.publishing.press import Press
from gantrymq.broker.registry import Registry
from gantrymq.broker.rooms import WaitingRooms
from gantrymq.broker.stats import Stats
from gantrymq.store.engine import Store


@dataclass(frozen=True)
class Publishing:
    """What the broker's parts list needs of it."""

    handler: PublishHandler
    journal: Journal
    press: Press

    async def open(self) -> None:
        """What the log says about epochs, before anybody can ask."""
        await self.journal.recover()
        await self.press.recover()

    async def close(self) -> None:
        await self.press.close()
        await self.journal.save()


def publishing(
    config: BrokerConfig,
    store: Store,
    registry: Registry,
    policy: Policy,
    rooms: WaitingRooms,
    stats: Stats,
    *,
    disk: Disk,
    offload: Offload,
    clock: WallClock,
    host: bytes,
) -> Publishing:
    ledger = Ledger()
    journal = Journal(
        store, policy, ledger, disk=disk, offload=offload, clock=clock, host=host,
        path=f"{config.store_path_root_dir}/config/publishing.json",
    )  # fmt: skip
    press = Press(store, registry.topics, ledger, journal, rooms, stats)
    store.ask_before_delete(press.may_delete)
    handler = PublishHandler(config, store, registry, policy, ledger, journal, press)
    return Publishing(handler, journal, press)
