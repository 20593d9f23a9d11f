"""`mqadmin`: finds the command, reads its options, runs it."""

import asyncio
import difflib
import sys
from importlib.metadata import entry_points

from gantrymq.access.key_sources import key_file_of_tools
from gantrymq.cli.common.guard import report
from gantrymq.cli.common.pipes import while_read
from gantrymq.cli.common.profiles import namesrv_of
from gantrymq.cli.mqadmin.command import AdminCommand, Invocation, WrongOption
from gantrymq.cli.mqadmin.output import JsonOutput, Output, TextOutput
from gantrymq.cli.mqadmin.parser import FORMATS, parse, parser_of
from gantrymq.cli.mqadmin.table import COMMANDS
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.options import ClientOptions

ENTRY_POINTS = "gantrymq.mqadmin"
"""Packages add commands under this name: each entry is a `AdminCommand`."""
INTERRUPTED = 130
HELP_WORDS = ("-h", "--help", "help")


def main() -> None:
    """The entry of the program."""
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run a command line; returns the exit code: 0, or 1 after one line on stderr."""
    try:
        return _run(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return report(error)


def _run(words: list[str]) -> int:
    form, words = _leading_format(words)
    if not words or (words[0] in HELP_WORDS and len(words) == 1):
        _print_commands()
        return 0
    if words[0] == "help":
        parser_of(find(words[1])).print_help()
        return 0
    command = find(words[0])
    values = parse(command, words[1:])
    return asyncio.run(_carry_out(command, values, values.pop("output") or form))


def _leading_format(words: list[str]) -> tuple[str, list[str]]:
    """`mqadmin -o json COMMAND`: works with commands whose own `-o` means something else, too."""
    if words[:1] in (["-o"], ["--output"]):
        if words[1:2] and words[1] in FORMATS:
            return words[1], words[2:]
        raise WrongOption(f"-o takes one of {', '.join(FORMATS)}")
    return FORMATS[0], words


async def _carry_out(command: AdminCommand, values: dict[str, object], form: str) -> int:
    out: Output = JsonOutput() if form == "json" else TextOutput()
    namesrv = values.pop("namesrvAddr")
    assert namesrv is None or isinstance(namesrv, str)
    if not command.needs_name_server:
        await command.run(Invocation(Admin(namesrv), out, values))  # which is not opened
    else:
        client = ClientOptions(key_file=key_file_of_tools())
        async with while_read(), Admin(namesrv_of(namesrv), client=client) as admin:
            await command.run(Invocation(admin, out, values))
    out.close()
    return 0


def all_commands() -> dict[str, AdminCommand]:
    """The commands by name: ours, and those of other packages."""
    found = {command.name: command for command in COMMANDS}
    for entry in entry_points(group=ENTRY_POINTS):
        command = entry.load()
        if not isinstance(command, AdminCommand):
            raise WrongOption(f"{entry.value} ({ENTRY_POINTS}) is no AdminCommand")
        found.setdefault(command.name, command)
    return found


def find(name: str) -> AdminCommand:
    """A command by its name, in any case; raises WrongOption that names the nearest."""
    known = {each.lower(): command for each, command in all_commands().items()}
    command = known.get(name.lower())
    if command is not None:
        return command
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f" Did you mean {known[near[0]].name}?" if near else " 'mqadmin' lists all commands."
    raise WrongOption(f"The sub command {name} not exist.{hint}")


def _print_commands() -> None:
    print("The most commonly used mqadmin commands are:")
    for name, command in all_commands().items():
        print(f"   {name:<35} {command.summary}")
    print("\nSee 'mqadmin help <command>' for more information on a specific command.")
