"""How commands print data to stdout: as a table, as JSON or as JSON lines."""

import base64
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import click

from gantrymq.base.errors import ConfigError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import report
from gantrymq.cli.common.profiles import load_profiles, namesrv_of
from gantrymq.cli.common.times import shown
from gantrymq.client.messages.received import Received

FORMATS = click.Choice(["table", "json", "jsonl"])
output_option = click.option(
    "-o", "--output", type=FORMATS, default="table", show_default=True, help="Format of the data."
)
_PROFILE = "gantrymq.profile"
"""Where the value of --profile waits for --namesrv."""
F = TypeVar("F", bound=Callable[..., Any])


def namesrv_option(command: F) -> F:
    """The options --namesrv and --profile; the command gets `namesrv` only."""
    profile = click.option(
        "--profile",
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=lambda ctx, _, value: ctx.meta.__setitem__(_PROFILE, value),
        shell_complete=_profile_names,
        help="A cluster of `gantry profile`; by default $GANTRY_PROFILE.",
    )
    namesrv = click.option(
        "-n",
        "--namesrv",
        metavar="ADDR;ADDR",
        callback=_chosen_namesrv,
        help="Name servers; by default those of --profile, $NAMESRV_ADDR, the current profile.",
    )
    return namesrv(profile(command))


def _chosen_namesrv(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    if ctx.resilient_parsing:
        return value
    try:
        return namesrv_of(value, ctx.meta.get(_PROFILE))
    except ConfigError as error:
        raise click.UsageError(str(error), ctx) from None


def _profile_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    try:
        return [name for name in sorted(load_profiles().table) if name.startswith(incomplete)]
    except ConfigError:
        return []


Row = dict[str, Any]
INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class Above0(click.FloatRange):
    """A finite number above 0; a range alone accepts `nan`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not 0 < number < math.inf:
            self.fail(f"{value!r} is no number above 0", param, ctx)
        return number


ABOVE_0 = Above0(0, min_open=True)


archive_option = click.option(
    "--archive",
    metavar="FOLDER",
    envvar="GANTRY_ARCHIVE",
    help="Also search this archive; by default $GANTRY_ARCHIVE.",
)


def needs_lake(error: ImportError) -> ConfigError:
    """The error if the packages that read archives are not installed."""
    return ConfigError(f"--archive needs an extra ({error.name}): pip install 'gantrymq[spark]'")


def body_fields(body: bytes) -> Row:
    """The body as `body` if it is UTF-8, else as `bodyBase64`."""
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(body).decode()}


def message_row(message: Received) -> Row:
    """A stored message as a row."""
    return {
        "msgId": message.msg_id,
        "topic": message.topic,
        "queueId": message.queue.queue_id,
        "queueOffset": message.offset,
        "tags": message.tags,
        "keys": list(message.keys),
        **body_fields(message.body),
        "storeTime": message.store_ms,
    }


def print_line(row: Row) -> None:
    """Print a row as one line of JSON."""
    sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_rows(rows: Sequence[Row], form: str) -> None:
    """Print rows in a format."""
    if form == "jsonl":
        for row in rows:
            print_line(row)
    elif form == "json":
        sys.stdout.write(json.dumps(list(rows), ensure_ascii=False, indent=2) + "\n")
    else:
        print_table(
            {**row, "storeTime": shown(row["storeTime"])} if "storeTime" in row else row
            for row in rows
        )


def print_listed(count: int, noun: str, *, hidden: int) -> None:
    """Print the length of a list to stderr, and how many more `--all` shows."""
    more = f"; {hidden} more with --all" if hidden else ""
    print(f"{counted(count, noun)}{more}", file=sys.stderr)


def print_table(rows: Iterable[Row]) -> None:
    """Print aligned columns, a line a row."""
    rows = list(rows)
    if not rows:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names] + [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    """Escape a control character: text of messages must not control the terminal."""
    return char if char.isprintable() else ascii(char)[1:-1]


def confirm(what: str, *, yes: bool) -> None:
    """Ask the user; without a terminal --yes is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"this would {what}; say --yes to do it")
    click.confirm(f"{what}?", abort=True, err=True)


def fail(error: Exception) -> NoReturn:
    """Print an error in one line and exit with code 1."""
    raise SystemExit(report(error))
