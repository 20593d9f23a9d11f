"""The parts of waiting messages: delay levels and timers."""

from dataclasses import dataclass

from gantrymq.broker.handlers.timers import TimerHandler
from gantrymq.broker.parts.feature import Feature, joined
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.broker.waiting.timer.checkpoint import TimerCheckFile
from gantrymq.broker.waiting.timer.delivery import TimerTarget
from gantrymq.broker.waiting.timer.levels import LevelMover
from gantrymq.broker.waiting.timer.roll import Roller
from gantrymq.broker.waiting.timer.service import SAVE_SECONDS, TimerService
from gantrymq.broker.waiting.waiting_list import WaitingView


@dataclass(frozen=True)
class WaitingParts:
    """Delay levels always run; timers run unless `timerWheelEnable` is off."""

    delays: DelayService
    timers: TimerService
    handler: TimerHandler
    feature: Feature


def build_waiting(shared: Shared, redirect: SystemTopicRedirect) -> WaitingParts:
    config, store, ports = shared.config, shared.store, shared.ports
    topics = shared.registry.topics.table
    delays = DelayService(
        store, shared.registry.delays, ports.clock, config.delay_levels_ms, topics, shared.stats
    )
    timers = TimerService(
        store,
        ports.clock,
        TimerCheckFile(
            ports.disk, ports.offload, f"{config.store_path_root_dir}/config/timercheck"
        ),
        TimerTarget(store, topics, shared.stats),
        config.timer_precision_ms,
    )
    view = WaitingView(store, delays, timers, ports.clock, shared.host)
    handler = TimerHandler(config, store, shared.registry, redirect, timers, view, ports.clock)
    feature = Feature(
        background=(delays.run,),
        saves=((config.flush_delay_offset_interval / 1000, delays.save),),
        closing=(delays.close,),
        on_settings=(lambda: delays.set_levels(config.delay_levels_ms),),
    )
    if config.timer_wheel_enable:
        feature = joined(feature, _run_timers(shared, delays, timers))
    return WaitingParts(delays, timers, handler, feature)


def _run_timers(shared: Shared, delays: DelayService, timers: TimerService) -> Feature:
    store, precision_ms = shared.store, shared.config.timer_precision_ms
    return Feature(
        background=(timers.run,),
        saves=((SAVE_SECONDS, timers.save),),
        closing=(timers.close,),
        before_delete=(
            LevelMover(delays, store, precision_ms).may_delete,
            Roller(timers, store, precision_ms).may_delete,
        ),
    )
