"""`gantry store stat`: what a store holds."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, output_option, print_line, print_table
from gantrymq.cli.common.times import shown
from gantrymq.cli.stores.options import (
    Shown,
    ledger_in,
    log_option,
    path_or_none,
    quiet_option,
    store_argument,
)

TIMES = ("firstStored", "lastStored", "logTime", "queueTime", "indexTime", "changed")


@click.command("stat", cls=GuardedCommand)
@store_argument
@log_option
@click.option("--count", "counts", is_flag=True, help="Count the records: reads the whole log.")
@quiet_option
@output_option
def stat(folder: Path, log_folder: Path | None, counts: bool, quiet: bool, output: str) -> None:
    """Show what STORE holds: log, queues, index, tables, checkpoint, raft state.

    The broker may run: what it has in memory only is not counted.
    """
    from gantrymq.store.tools.stat import StoreStat

    ledger = ledger_in(folder, log_folder)
    log_directory = ledger.log.directory if ledger is not None else path_or_none(log_folder)
    found = StoreStat(str(folder), log_directory)
    parts = found.parts()
    if ledger is not None:
        from gantrymq.store.tools.dledger import dledger_rows

        parts["dledger"] = dledger_rows(ledger)
        parts["store"][0]["writtenBy"] = "RocketMQ (DLedger)"
    if counts and ledger is None:
        display = Shown("log files", quiet=quiet)
        parts["store"][0].update(found.count(display.tell))
        display.end()
    print_parts(parts, output)
    queues = parts["queues"]
    said = f"{counted(len(queues), 'queue')} with {counted(_messages(queues), 'message', form=',')}"
    print(said, file=sys.stderr)


def _messages(queues: list[Row]) -> int:
    return sum(row["messages"] for row in queues)


def print_parts(parts: dict[str, list[Row]], output: str) -> None:
    """Print the parts of a store: tables one after the other, or JSON."""
    if output == "json":
        sys.stdout.write(json.dumps(parts, ensure_ascii=False, indent=2) + "\n")
    elif output == "jsonl":
        for part, rows in parts.items():
            for row in rows:
                print_line({"part": part, **row})
    else:
        for part, rows in parts.items():
            if part in ("store", "checkpoint", "raft", "dledger"):
                print_table(_upright(part, rows))
            else:
                print_table(
                    {name: _text(name, value) for name, value in row.items()} for row in rows
                )


def _upright(part: str, rows: list[Row]) -> list[Row]:
    """A row a field."""
    return [
        {part: name, "value": _text(name, value)} for row in rows for name, value in row.items()
    ]


def _text(name: str, value: Any) -> Any:
    if name in TIMES:
        return shown(value)
    return " ".join(value) if isinstance(value, list) and name == "marks" else value
