"""The figures of GET_BROKER_RUNTIME_INFO, for tools of operators.

Names are RocketMQ's. Where a release renamed a figure the broker sends both names: clusterList of
4.9 and RocketMQ's exporter fail when one of theirs is missing.
"""

from collections.abc import Callable

from gantrymq.base.clock import WallClock
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.model import SCHEDULE_TOPIC
from gantrymq.protocol.codes import VERSION_4_9_8
from gantrymq.protocol.record import decode_record
from gantrymq.remoting.limits import Refusals
from gantrymq.store.engine import Store

PULL_QUEUE_CAPACITY, QUERY_QUEUE_CAPACITY = 100_000, 20_000
"""RocketMQ's defaults, from which tools compute how full its queues are."""

UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class Figures:
    """Collects the figures from the parts of the broker."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        stats: BrokerStats,
        held_pulls: Callable[[], int],
        delays: DelayService,
        timers: TimerService,
        clock: WallClock,
        refusals: Refusals,
    ) -> None:
        self._config, self._store, self._stats = config, store, stats
        self._held_pulls, self._clock = held_pulls, clock
        self._delays, self._timers, self._refusals = delays, timers, refusals

    async def table(self) -> dict[str, str]:
        first = await self._store.reads.message_at(self._store.log_min)
        earliest_ms = decode_record(first).store_ms if first is not None else -1
        figures = {
            "brokerActive": str(not self._config.is_slave).lower(),
            "brokerVersion": VERSION_4_9_8,
            "brokerVersionDesc": "V4_9_8",
            "earliestMessageTimeStamp": earliest_ms,
            "startAcceptSendRequestTimeStamp": 0,
            **self._age(),
            **self._put(),
            **self._got(),
            **self._disk(),
            **self._queues(),
            **self._waiting(),
            **{f"refused_{key}": count for key, count in self._refusals.counts.items()},
            **self._stats.counters,
        }
        return {name: str(value) for name, value in figures.items()}

    def _age(self) -> dict[str, object]:
        seconds = (self._clock.now_ms() - self._stats.boot_ms) // 1000
        days, hours, minutes = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60
        text = f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"
        return {"bootTimestamp": self._stats.boot_ms, "runtime": text}

    def _put(self) -> dict[str, object]:
        stats, written = self._stats, self._store.written
        return {
            "msgPutTotalTodayMorning": stats.put_morning[1],
            "msgPutTotalTodayNow": written.count,
            "msgPutTotalYesterdayMorning": stats.put_morning[0],
            "putLatency99": f"{written.percentile_ms(0.99):.2f}",
            "putLatency999": f"{written.percentile_ms(0.999):.2f}",
            "putMessageAverageSize": written.bytes / max(1, written.count),
            "putMessageDistributeTime": written.classes(),
            "putMessageEntireTimeMax": written.longest_ms,
            "putMessageFailedTimes": written.failed,
            "putMessageSizeTotal": written.bytes,
            "putMessageTimesTotal": written.count,
            "putTps": stats.rates(1),
        }

    def _got(self) -> dict[str, object]:
        stats, transferred = self._stats, self._stats.rates(2)
        return {
            "getFoundTps": stats.rates(3),
            "getMessageEntireTimeMax": stats.read_longest_ms,
            "getMissTps": stats.rates(4),
            "getTotalTps": stats.rates(5),
            "getTransferedTps": transferred,
            "getTransferredTps": transferred,
            "msgGetTotalTodayMorning": stats.get_morning[1],
            "msgGetTotalTodayNow": stats.get_count,
            "msgGetTotalYesterdayMorning": stats.get_morning[0],
        }

    def _disk(self) -> dict[str, object]:
        store, usage = self._store, self._store.usage
        free, ratio = usage["disk_free_bytes"], usage["disk_used_ratio"]
        log_ratio = usage["log_disk_used_ratio"]
        sizes = free / (1 - ratio) if ratio < 1 else 0, free
        total_text, free_text = (readable_bytes(int(size)) for size in sizes)
        return {
            "commitLogDirCapacity": f"Total : {total_text}, Free : {free_text}.",
            "commitLogDiskRatio": log_ratio,
            f"commitLogDiskRatio_{store.config.commit_log_directory}": log_ratio,
            "commitLogMaxOffset": store.log_max,
            "commitLogMinOffset": store.log_min,
            "consumeQueueDiskRatio": ratio,
            "dispatchBehindBytes": store.dispatch_behind_bytes,
            "dispatchMaxBuffer": 0,
            "pageCacheLockTimeMills": 0,
            "remainHowManyDataToFlush": readable_bytes(store.log_max - store.flushed.value),
            "remainTransientStoreBufferNumbs": 0,
        }

    def _queues(self) -> dict[str, object]:
        """The sizes of RocketMQ's thread pool queues: 0, as no request waits for a thread here."""
        figures: dict[str, object] = {}
        for name in ("send", "pull", "litePull", "query", "ack"):
            figures[f"{name}ThreadPoolQueueSize"] = 0
            figures[f"{name}ThreadPoolQueueCapacity"] = 0
            figures[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = 0
        return figures | {
            "pullsHeld": self._held_pulls(),
            "pullThreadPoolQueueCapacity": PULL_QUEUE_CAPACITY,
            "queryThreadPoolQueueCapacity": QUERY_QUEUE_CAPACITY,
            "sendThreadPoolQueueCapacity": self._config.send_thread_pool_queue_capacity,
            "EndTransactionQueueSize": 0,
            "EndTransactionThreadPoolQueueCapacity": 0,
        }

    def _waiting(self) -> dict[str, object]:
        """The next offset and the end of each delay level, and the figures of the timer."""
        levels = {
            f"scheduleMessageOffset_{level}": f"{self._delays.position(level)},{end}"
            for level in self._delays.levels()
            if (end := self._store.queues.max_offset(SCHEDULE_TOPIC, level - 1))
        }
        return {**levels, **self._timers.figures()}


def readable_bytes(count: int) -> str:
    """A size as RocketMQ prints it: 12 B, 1.5 KiB, 2.0 GiB."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(UNITS))
    return f"{count / 1024**power:.1f} {UNITS[power - 1]}"
