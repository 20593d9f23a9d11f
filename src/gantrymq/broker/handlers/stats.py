"""Rates and producers, as RocketMQ's exporter and dashboard ask for them."""

from gantrymq.base.clock import WallClock
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ProducerInfo, ProducerTableInfo
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection


class StatsHandler:
    """VIEW_BROKER_STATS_DATA (315) and GET_ALL_PRODUCER_INFO (328)."""

    def __init__(self, windows: StatsWindows, sessions: Sessions, clock: WallClock) -> None:
        self._windows, self._sessions, self._clock = windows, sessions, clock

    async def view(self, connection: Connection, command: Command) -> Command:
        """VIEW_BROKER_STATS_DATA (315): one statistic over the last minute, hour and day."""
        h = c.VIEW_BROKER_STATS_DATA.request.parse(command.ext)
        found = self._windows.view(h.stats_name, h.stats_key)
        if found is None:
            raise BadRequest(f"The stats <{h.stats_name}> <{h.stats_key}> not exist")
        return response(command, body=fastjson.dumps(found))

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
