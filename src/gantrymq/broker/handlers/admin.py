"""The broker about itself: settings and running figures."""

from gantrymq.base.clock import WallClock
from gantrymq.base.config import format_properties, parse_properties
from gantrymq.broker.figures import Figures
from gantrymq.broker.settings.live_settings import BrokerSettings
from gantrymq.model import DataVersion
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import KvTable
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection


class AdminHandler:
    """25, 26 and 28."""

    def __init__(
        self,
        live: BrokerSettings,
        figures: Figures,
        clock: WallClock,
    ) -> None:
        self._live, self._figures, self._clock = live, figures, clock
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
        return response(command, body=fastjson.dumps(KvTable(table=await self._figures.table())))
