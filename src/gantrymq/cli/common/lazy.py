"""A group of commands that imports a command only when it is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from gantrymq.cli.common.guard import guarded


class LazyGroup(click.Group):
    """Has the place (`module:name`) and the summary of each command by its name."""

    def __init__(
        self, *args: Any, places: Mapping[str, str], summaries: Mapping[str, str], **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._places, self._summaries = places, summaries

    def invoke(self, ctx: click.Context) -> Any:
        with guarded():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and summaries of commands; none is imported for it."""
        found = [
            CompletionItem(name, help=summary)
            for name, summary in self._summaries.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
