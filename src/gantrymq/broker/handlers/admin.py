"""Settings and runtime figures of the broker."""

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
    """UPDATE_BROKER_CONFIG (25), GET_BROKER_CONFIG (26) and GET_BROKER_RUNTIME_INFO (28)."""

    def __init__(
        self,
        live: BrokerSettings,
        figures: Figures,
        clock: WallClock,
    ) -> None:
        self._live, self._figures, self._clock = live, figures, clock
        self._version = DataVersion()

    async def get_config(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_CONFIG (26): all settings that are in force, as a property file."""
        text = format_properties(self._live.shown)
        ext = {"version": fastjson.dumps(self._version).decode()}
        return response(command, ext=ext, body=text.encode())

    async def update_config(self, connection: Connection, command: Command) -> Command:
        """UPDATE_BROKER_CONFIG (25): change settings.

        The remark names the settings that wait for the next start, have no effect here or are
        unknown.
        """
        wanted = parse_properties(command.body.decode("utf-8", "replace"))
        if not wanted:
            return response(command)
        outcome = await self._live.change(wanted)
        self._version = self._version.next(self._clock.now_ms())
        return response(command, remark=outcome.remark)

    async def runtime(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_RUNTIME_INFO (28): the figures that `brokerStatus` and exporters read."""
        return response(command, body=fastjson.dumps(KvTable(table=await self._figures.table())))
