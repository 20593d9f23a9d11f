"""Prints docs/mqadmin.md: every command of mqadmin with what it prints on a small cluster.

.venv/bin/python tests/kits/mqadmin_page.py > docs/mqadmin.md
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

from mqadminkit import Case, Place, Scene, cases, white_listed

from gantrymq.cli.mqadmin.commands import refused
from gantrymq.cli.mqadmin.main import all_commands, run
from gantrymq.cli.mqadmin.parser import parser_of
from gantrymq.testing.threaded import GantryCluster

LINES_MAX, WIDTH_MAX = 14, 118
COMMON = "(-n,--namesrvAddr|-h,--help|-o,--output|--output)"
"""Options of every command, which the head of the page explains."""
HEAD = """# mqadmin

RocketMQ's commands for operators, with its names, options and columns; they work on these brokers
and on RocketMQ's 4.9 and 5.x. `mqadmin` lists them, `mqadmin help COMMAND` and `mqadmin COMMAND -h`
show the options, `gantry admin COMMAND` is the same.

- Name servers are given with `-n`, as `'host:9876;host:9876'`, or by `NAMESRV_ADDR`.
- `-b` is one broker, `ip:port` (10911 without a port); `-c` is a cluster: its masters for changes,
  slaves too for clean-ups and status. `-b` beats `-c`.
- `mqadmin -o json COMMAND` prints JSON: a list if the command has rows only, else an object with
  `rows`, the single values, and `done`. Behind the command it is `--output json`, or `-o json` if
  RocketMQ has no `-o` there.
- The exit code is 0, or 1 after one line on stderr. RocketMQ's ends with 0 when it failed, too.
  A change of several brokers of which one fails says what was done; it can be repeated as a whole.
- Times are `now`, milliseconds, `yyyy-MM-dd#HH:mm:ss:SSS`, or as `gantry` reads them, for instance
  `'yesterday 09:00'`.
- A password or secret key is given as `-`, because a list of processes shows what stands on a
  command line: it is asked for twice, or without a terminal it is a line of standard input.
- Other packages add commands by the entry point `gantrymq.mqadmin`, each an `AdminCommand`
  (`gantrymq.cli.mqadmin.command`).

This page is printed by the commands themselves (`tests/kits/mqadmin_page.py`).
"""


def page(place: Place) -> str:
    """The whole page."""
    known = all_commands()
    by_name = {case.name: case for case in cases()}
    parts = [HEAD]
    for name, command in known.items():
        if name in refused.REASONS:
            continue
        parts.append(f"## {name}\n\n{command.summary}\n\n```text\n{usage(name)}\n```")
        if name in by_name:
            parts.append(example(by_name[name], place))
    rows = "\n".join(f"| {name} | {why} |" for name, (_, why) in refused.REASONS.items())
    parts.append(f"## What has no meaning here\n\n| command | why |\n|---|---|\n{rows}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def usage(name: str) -> str:
    """The options of a command, as its help has them."""
    text = parser_of(all_commands()[name]).format_help()
    text = re.sub(r"\n\n.*?\n\noptions:", "\n", text, count=1, flags=re.DOTALL)
    return re.sub(rf"\n  {COMMON}[^\n]*(\n {{20}}[^\n]*)?", "", text).strip()


def example(case: Case, place: Place) -> str:
    """A call and its output, with what differs from run to run made plain."""
    for words in case.needs:
        said(words, place)
    with case.typed():
        printed = said(case.words, place)
    for words in case.then:
        said(words, place)
    shown = plain(cut(printed), place)
    typed = " < secret.txt" if case.types else ""
    return f"```text\n$ mqadmin {plain(place.fill(case.words), place)}{typed}\n{shown}\n```"


def cut(printed: str) -> str:
    """The first lines, none of them too wide for a page."""
    lines = printed.rstrip().splitlines()
    shown = lines[:LINES_MAX] + (["..."] if len(lines) > LINES_MAX else [])
    return "\n".join(line if len(line) <= WIDTH_MAX else f"{line[:WIDTH_MAX]}..." for line in shown)


def said(words: str, place: Place) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run([*(place.fill(word) for word in words.split(" ")), "-n", place.namesrv])
    return out.getvalue() or err.getvalue()


def plain(text: str, place: Place) -> str:
    """Addresses and folders as a reader would have them."""
    host = place.client.partition("@")[0]
    for real, shown in (
        (str(place.files), "."),
        (str(Path.home()), "~"),
        (tempfile.gettempdir(), "/tmp"),
        (place.broker, "10.0.0.2:10911"),
        (place.namesrv, "10.0.0.1:9876"),
        (place.client, "10.0.0.9@4711#1"),
        (host, "10.0.0.9"),
    ):
        text = text.replace(real, shown)
    return text


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rules = white_listed(Path(folder))
        running = GantryCluster(acl_enable=True, acl_file=rules["aclFile"])
        with Scene(running.namesrv, Path(folder)) as scene:
            os.chdir(folder)
            sys.stdout.write(page(scene.place))
            sys.stdout.flush()
        running.close()


if __name__ == "__main__":
    main()
