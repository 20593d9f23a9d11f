"""What a command of `mqadmin` is: a name, options, and a coroutine that carries it out."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gantrymq.base.errors import ConfigError
from gantrymq.cli.mqadmin.output import Output
from gantrymq.client.admin.admin import Admin


class WrongOption(ConfigError):
    """An option is missing or has a value that cannot be used; the command did nothing."""


@dataclass(frozen=True)
class AdminOption:
    """One option: `-t TOPIC` or `--topic TOPIC`."""

    short: str | None
    name: str
    help: str
    required: bool = False
    is_flag: bool = False
    """It takes no value; its own value is True or False."""
    read: Callable[[str], Any] = str
    """Turns the text into a value; raises ValueError with what is wrong."""
    default: Any = None


@dataclass(frozen=True)
class Invocation:
    """One call of a command: the values of its options, and what it works with."""

    admin: Admin
    out: Output
    values: Mapping[str, Any] = field(repr=False)
    """By the long name of each option; None if it was not given and has no default. Passwords are
    among them."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


Run = Callable[[Invocation], Awaitable[None]]


@dataclass(frozen=True)
class AdminCommand:
    """A command as operators type it."""

    name: str
    summary: str
    options: tuple[AdminOption, ...]
    run: Run
    one_of: tuple[str, ...] = ()
    """Long names of options of which at least one must be given."""
    needs_name_server: bool = True
    takes_anything: bool = False
    """Options are not looked at: the command only says why it is refused."""


def command(
    name: str,
    summary: str,
    *options: AdminOption,
    one_of: tuple[str, ...] = (),
    needs_name_server: bool = True,
) -> Callable[[Run], AdminCommand]:
    """Make a command of a coroutine."""

    def declare(run: Run) -> AdminCommand:
        return AdminCommand(name, summary, options, run, one_of, needs_name_server)

    return declare
