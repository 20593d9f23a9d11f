"""The broker about itself: settings and running figures."""

from gantrymq.base.clock import WallClock
from gantrymq.base.config import format_properties, parse_properties
from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.live_settings import LiveSettings
from gantrymq.broker.stats import Stats
from gantrymq.broker.timer.service import TimerService
from gantrymq.model import DataVersion
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import KvTable
from gantrymq.protocol.codes import VERSION_4_9_8
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.record import decode_record
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store


class AdminHandler:
    """25, 26 and 28."""

    def __init__(
        self,
        live: LiveSettings,
        store: Store,
        stats: Stats,
        pulls: PullHandler,
        timers: TimerService,
        clock: WallClock,
    ) -> None:
        self._live, self._store, self._stats = live, store, stats
        self._pulls, self._timers, self._clock = pulls, timers, clock
        self._version = DataVersion()

    async def get_config(self, connection: Connection, command: Command) -> Command:
        text = format_properties(self._live.in_force)
        ext = {"version": fastjson.dumps(self._version).decode()}
        return response(command, ext=ext, body=text.encode())

    async def update_config(self, connection: Connection, command: Command) -> Command:
        """Change what can change now, keep the rest for the next start, and say which is which."""
        wanted = parse_properties(command.body.decode("utf-8", "replace"))
        if not wanted:
            return response(command)
        outcome = await self._live.change(wanted)
        self._version = self._version.next(self._clock.now_ms())
        return response(command, remark=outcome.remark)

    async def runtime(self, connection: Connection, command: Command) -> Command:
        first = await self._store.message_at(self._store.log_min)
        earliest = decode_record(first).store_ms if first is not None else -1
        return response(command, body=fastjson.dumps(KvTable(table=self._figures(earliest))))

    def _figures(self, earliest_ms: int) -> dict[str, str]:
        stats, store = self._stats, self._store
        usage = store.usage
        running_ms = self._clock.now_ms() - stats.boot_ms
        found = stats.rates(3)
        figures: dict[str, object] = {
            "brokerActive": "true",
            "bootTimestamp": stats.boot_ms,
            "brokerVersion": VERSION_4_9_8,
            "brokerVersionDesc": "V4_9_8",
            "commitLogMaxOffset": store.log_max,
            "commitLogMinOffset": store.log_min,
            "commitLogDiskRatio": usage["disk_used_ratio"],
            "consumeQueueDiskRatio": usage["disk_used_ratio"],
            "dispatchBehindBytes": store.dispatch_behind_bytes,
            "earliestMessageTimeStamp": earliest_ms,
            "getFoundTps": found,
            "getMessageEntireTimeMax": 0,
            "getMissTps": stats.rates(4),
            "getTotalTps": found,
            "getTransferredTps": stats.rates(2),
            "msgGetTotalTodayMorning": stats.get_morning[1],
            "msgGetTotalTodayNow": stats.get_count,
            "msgGetTotalYesterdayMorning": stats.get_morning[0],
            "msgPutTotalTodayMorning": stats.put_morning[1],
            "msgPutTotalTodayNow": stats.put_count,
            "msgPutTotalYesterdayMorning": stats.put_morning[0],
            "pageCacheLockTimeMills": 0,
            "pullThreadPoolQueueSize": self._pulls.held,
            "pullThreadPoolQueueCapacity": 0,
            "pullThreadPoolQueueHeadWaitTimeMills": 0,
            "putMessageAverageSize": stats.put_bytes / max(1, stats.put_count),
            "putMessageTimesTotal": stats.put_count,
            "putTps": stats.rates(1),
            "queryThreadPoolQueueSize": 0,
            "remainHowManyDataToFlush": f"{store.log_max - store.flushed.value} B",
            "runtime": f"[ {running_ms // 86_400_000} days, {running_ms // 3_600_000 % 24} hours, "
            f"{running_ms // 60_000 % 60} minutes, {running_ms // 1_000 % 60} seconds ]",
            "sendThreadPoolQueueSize": 0,
            "sendThreadPoolQueueCapacity": 0,
            "sendThreadPoolQueueHeadWaitTimeMills": 0,
            **self._timers.figures(),
        }
        figures |= stats.counters
        return {key: str(value) for key, value in figures.items()}
