"""Prints docs/gantry.md: every command of gantry with what it prints on a small cluster.

.venv/bin/python tests/kits/gantry_page.py > docs/gantry.md
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import click
from gantrykit import GantryPlace, furnish, gantry_cases, leaves, page_of, said
from mqadmin_page import cut, plain
from mqadminkit import Case, Scene, white_listed

from gantrymq.testing.threaded import GantryCluster

COMMON = {"namesrv", "profile", "output"}
"""Options of nearly every command, which the head of the page explains."""
HEAD = """# gantry

Every command with its options and what it prints. They work on these brokers and on RocketMQ's 4.9
and 5.x. [Operators' commands](guides/operators.md) has them by question, [mqadmin](mqadmin.md) has
RocketMQ's own.

- Name servers are given by `-n`, `--profile`, `NAMESRV_ADDR` or the current profile.
- `-o table`, `-o json` and `-o jsonl` choose the form of what has rows. Data goes to standard
  output, words about it to standard error; here they stand together.
- The exit code is 0, 1 (failed, or found something wrong) or 2 (wrong usage); 130 after Ctrl-C.
- Times are milliseconds, `2026-11-18 09:00`, `yesterday 09:00`, `-2h` or `now`; places are these,
  offsets, `first` and `last`.

This page is printed by the commands themselves (`tests/kits/gantry_page.py`).
"""


def page(place: GantryPlace) -> str:
    """The whole page."""
    by_name = gantry_cases()
    parts, elsewhere = [HEAD], []
    for name, command in leaves():
        if name in by_name:
            examples = [example(case, place) for case in by_name[name]]
            about = f"## {name}\n\n{summary(command)}\n\n```text\n{options(name, command)}\n```"
            parts += [about, *examples]
        else:
            shown = page_of(name)
            elsewhere.append(f"| `gantry {name}` | {summary(command)} | [here]({shown}) |")
    rows = "\n".join(elsewhere)
    parts.append(
        f"## Shown on other pages\n\n| command | what it does | page |\n|---|---|---|\n{rows}"
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def summary(command: click.Command) -> str:
    """The first sentence of its help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def options(name: str, command: click.Command) -> str:
    """Usage, arguments and options, without those of nearly every command."""
    context = click.Context(command, info_name=f"gantry {name}")
    rows = [
        record
        for param in command.params
        if isinstance(param, click.Option)
        and param.name not in COMMON
        and (record := param.get_help_record(context)) is not None
    ]
    formatter = click.HelpFormatter(width=110)
    formatter.write_usage(context.command_path, " ".join(command.collect_usage_pieces(context)))
    if rows:
        formatter.write_dl(rows)
    return re.sub(r"^Usage: ", "", formatter.getvalue()).strip()


def example(case: Case, place: GantryPlace) -> str:
    """A call and its output, with what differs from run to run made plain."""
    for words in case.needs:
        said(words, place)
    _, printed = said(case.words, place)
    for words in case.then:
        said(words, place)
    typed = plain(place.fill(case.words), place)
    return f"```text\n$ gantry {typed}\n{plain(cut(printed), place)}\n```"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rules = white_listed(Path(folder))
        running = GantryCluster(acl_enable=True, acl_file=rules["aclFile"])
        with Scene(running.namesrv, Path(folder)) as scene:
            os.chdir(folder)
            os.environ["GANTRY_CONFIG"] = str(Path(folder) / "profiles.toml")
            sys.stdout.write(page(furnish(scene.place)))
            sys.stdout.flush()
        running.close()


if __name__ == "__main__":
    main()
