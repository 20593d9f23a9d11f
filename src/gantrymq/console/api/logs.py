"""The levels of the console's own log."""

from typing import Annotated

import msgspec

from gantrymq.base.errors import ConfigError
from gantrymq.base.telemetry import set_levels
from gantrymq.base.telemetry_settings import TelemetrySettings, check_telemetry
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, Question
from gantrymq.console.errors import BadInput

TABLE = EndpointTable("logs")


class WantedLevels(Question, frozen=True, kw_only=True):
    """Nothing to say: there is one log."""


class NewLevels(Question, frozen=True, kw_only=True):
    """From which levels on lines are written."""

    level: Annotated[str, msgspec.Meta(max_length=20)] = "INFO"
    """DEBUG, INFO, WARNING, ERROR or CRITICAL."""
    levels: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    """Other levels for parts, as `console:DEBUG,client:WARNING`."""


class LogLevels(Answer, frozen=True, kw_only=True):
    """The levels in force."""

    level: str
    levels: str


@TABLE.get("/logs")
async def show_levels(ask: Ask, wanted: WantedLevels) -> LogLevels:
    """From which levels on the console writes its log. For admins."""
    ask.check_admin()
    logs = ask.parts.settings.logs
    return LogLevels(level=logs.log_level, levels=logs.log_levels)


@TABLE.put("/logs")
async def change_levels(ask: Ask, wanted: NewLevels) -> LogLevels:
    """Write the console's log from other levels on, until it ends. For admins."""
    ask.check_admin()
    checked = TelemetrySettings(log_level=wanted.level, log_levels=wanted.levels)
    try:
        check_telemetry(checked)
    except ConfigError as error:
        raise BadInput(str(error)) from error
    logs = ask.parts.settings.logs
    logs.log_level, logs.log_levels = checked.log_level, checked.log_levels
    set_levels(logs)
    return LogLevels(level=logs.log_level, levels=logs.log_levels)
