"""Rates and producers, as RocketMQ's exporter and dashboard ask for them."""

from gantrymq.base.clock import WallClock
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.registry import Offsets
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import (
    BrokerStatsData,
    BrokerStatsItem,
    ProducerInfo,
    ProducerTableInfo,
)
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store

FALL_SIZE, FALL_TIME = "GROUP_GET_FALL_SIZE", "GROUP_GET_FALL_TIME"


class StatsHandler:
    """VIEW_BROKER_STATS_DATA (315) and GET_ALL_PRODUCER_INFO (328)."""

    def __init__(
        self,
        windows: StatsWindows,
        sessions: Sessions,
        store: Store,
        offsets: Offsets,
        clock: WallClock,
    ) -> None:
        self._windows, self._sessions, self._clock = windows, sessions, clock
        self._store, self._offsets = store, offsets

    async def view(self, connection: Connection, command: Command) -> Command:
        """VIEW_BROKER_STATS_DATA (315): one statistic over the last minute, hour and day.

        How far a group is behind (GROUP_GET_FALL_SIZE, GROUP_GET_FALL_TIME) is a state and no
        count: it is the sum of every window. RocketMQ keeps both, and answers neither.
        """
        h = c.VIEW_BROKER_STATS_DATA.request.parse(command.ext)
        if h.stats_name in (FALL_SIZE, FALL_TIME):
            found = await self._behind(h.stats_name, h.stats_key)
        else:
            found = self._windows.view(h.stats_name, h.stats_key)
        if found is None:
            raise BadRequest(f"The stats <{h.stats_name}> <{h.stats_key}> not exist")
        return response(command, body=fastjson.dumps(found))

    async def _behind(self, name: str, key: str) -> BrokerStatsData | None:
        """Bytes of the log, or milliseconds, between a group's next message and now."""
        number, _, pair = key.partition("@")
        topic, _, group = pair.rpartition("@")
        queue_id = int(number) if number.isdigit() else -1
        if self._offsets.get(group, topic, queue_id) is None:
            return None
        at = self._offsets.pulled_to(group, topic, queue_id)
        entries = await self._store.reads.entries(topic, queue_id, at, 1)
        value = 0
        if entries and name == FALL_SIZE:
            value = self._store.log_max - entries[0].position
        elif entries:
            stored_ms = await self._store.reads.store_ms_at(topic, queue_id, at)
            value = max(0, self._clock.now_ms() - stored_ms) if stored_ms >= 0 else 0
        item = BrokerStatsItem(sum=value)
        return BrokerStatsData(stats_day=item, stats_hour=item, stats_minute=item)

    async def producers(self, connection: Connection, command: Command) -> Command:
        """GET_ALL_PRODUCER_INFO (328): the members of every producer group."""
        now, now_ms = connection.loop.time(), self._clock.now_ms()
        table = {
            group: [
                ProducerInfo(
                    client_id=client.client_id,
                    language=client.language,
                    last_update_timestamp=now_ms - round((now - client.heard) * 1000),
                    # Java writes a socket address with a slash.
                    remote_ip=f"/{member.address}",
                    version=client.version,
                )
                for member, client in members.items()
            ]
            for group, members in self._sessions.producers.items()
            if members
        }
        return response(command, body=fastjson.dumps(ProducerTableInfo(data=table)))
