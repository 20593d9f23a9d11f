"""Everything that waits, put together: delay levels and timers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.broker.handlers.timers import TimerHandler
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.broker.waiting.timer.levels import LevelMover
from gantrymq.broker.waiting.timer.roll import Roller
from gantrymq.broker.waiting.timer.service import SAVE_SECONDS, TimerService
from gantrymq.broker.waiting.waiting_list import WaitingView
from gantrymq.store.engine import Store


@dataclass(frozen=True)
class Timing:
    """What the broker's parts list needs of it. Switched off, no timer runs."""

    delays: DelayService
    service: TimerService
    handler: TimerHandler
    background: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    saves: list[tuple[float, Callable[[], Awaitable[None]]]] = field(default_factory=list)
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)


def timing(
    config: BrokerConfig,
    store: Store,
    registry: Registry,
    redirect: SystemTopicRedirect,
    stats: BrokerStats,
    *,
    disk: Disk,
    offload: Offload,
    clock: WallClock,
    host: bytes,
) -> Timing:
    delays = DelayService(
        store, registry.delays, clock, config.delay_levels_ms, registry.topics.table, stats
    )
    service = TimerService(
        store, disk, offload, clock,
        path=f"{config.store_path_root_dir}/config/timercheck",
        precision_ms=config.timer_precision_ms,
        topics=registry.topics.table,
        stats=stats,
    )  # fmt: skip
    view = WaitingView(store, delays, service, clock, host)
    handler = TimerHandler(config, store, registry, redirect, service, view, clock)
    made = Timing(delays, service, handler)
    made.background.append(delays.run)
    made.saves.append((config.flush_delay_offset_interval / 1000, delays.save))
    made.closing.append(delays.close)
    if config.timer_wheel_enable:
        precision_ms = config.timer_precision_ms
        store.ask_before_delete(LevelMover(delays, store, precision_ms).may_delete)
        store.ask_before_delete(Roller(service, store, precision_ms).may_delete)
        made.background.append(service.run)
        made.saves.append((SAVE_SECONDS, service.save))
        made.closing.append(service.close)
    return made
