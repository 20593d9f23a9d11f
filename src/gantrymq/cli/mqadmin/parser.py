"""Reads the command line of `mqadmin` as RocketMQ's tools do.

`-t orders`, `-torders`, `--topic orders`, `--topic=orders` and `-topic orders` mean the same,
and long names may be cut short.
"""

import argparse
from typing import Any, NoReturn

from gantrymq.cli.mqadmin.command import AdminCommand, AdminOption, WrongOption

WIDTH = 110
"""Of help texts, as in RocketMQ."""

NAMESRV = AdminOption(
    "n", "namesrvAddr", "Name servers, as 'host:9876;host:9876'; else $NAMESRV_ADDR."
)
FORMATS = ("table", "json")


class _HelpFormatter(argparse.HelpFormatter):
    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-t,--topic <arg>`: the forms that RocketMQ's help names."""
        names = [name for name in action.option_strings if name[:2] == "--" or len(name) < 4]
        value = f" {action.metavar or '<arg>'}" if action.nargs != 0 else ""
        return ",".join(names) + value


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongOption(f"{message}; see 'mqadmin help {self.prog.partition(' ')[2]}'")


def parser_of(command: AdminCommand) -> argparse.ArgumentParser:
    """The parser of one command; it raises WrongOption."""
    parser = _Parser(
        prog=f"mqadmin {command.name}",
        description=command.summary,
        formatter_class=lambda prog: _HelpFormatter(prog, max_help_position=40, width=WIDTH),
        add_help=False,
    )
    options = [*command.options, NAMESRV]
    for option in options:
        _add(parser, option)
    parser.add_argument("-h", "--help", action="help", help="Print this help.")
    names = ["--output"] if any(option.short == "o" for option in options) else ["-o", "--output"]
    parser.add_argument(*names, choices=FORMATS, default=None, help="Format of the output.")
    return parser


def _add(parser: argparse.ArgumentParser, option: AdminOption) -> None:
    names = [f"-{option.short}"] if option.short else []
    names.append(f"--{option.name}")
    if len(option.name) > 1:
        names.append(f"-{option.name}")  # RocketMQ takes one dash as well
    about: dict[str, Any] = {"dest": option.name, "help": option.help, "required": option.required}
    if option.is_flag:
        parser.add_argument(*names, action="store_true", **about)
        return
    parser.add_argument(
        *names, type=_reader(option), default=option.default, metavar="<arg>", **about
    )


def _reader(option: AdminOption) -> Any:
    def read(text: str) -> Any:
        try:
            return option.read(text.strip())
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def parse(command: AdminCommand, words: list[str]) -> dict[str, Any]:
    """The values of a command's options by their long names; raises WrongOption."""
    parser = parser_of(command)
    found = (
        parser.parse_known_args(words)[0] if command.takes_anything else parser.parse_args(words)
    )
    values = vars(found)
    if command.one_of and all(values[name] is None for name in command.one_of):
        shorts = {option.name: option.short for option in command.options}
        wanted = " or ".join(f"-{shorts[name]}" for name in command.one_of)
        raise WrongOption(f"{wanted} is needed; see 'mqadmin help {command.name}'")
    return values
