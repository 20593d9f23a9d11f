"""`gantry store dump`: records of a store, or the contents of one of its files."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import click

from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, body_fields, output_option, print_line, print_rows
from gantrymq.cli.stores.options import ledger_in, log_option, path_or_none, store_argument

TABLE_COLUMNS = ("position", "size", "topic", "queueId", "queueOffset", "tags", "keys", "storeTime")


@click.command("dump", cls=GuardedCommand)
@store_argument
@log_option
@click.option("--from", "first", type=click.IntRange(0), help="A log offset; with --queue its own.")
@click.option("--to", "end", type=click.IntRange(0), help="The first offset that is not printed.")
@click.option("--topic", help="Only records of this topic.")
@click.option("--queue", "queue_id", type=click.IntRange(0), help="Only this queue of --topic.")
@click.option("--key", help="Only records with this key or message id.")
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@click.option(
    "--file", "path", type=click.Path(path_type=Path),
    help="Print this file: queue entries, an index file or the checkpoint.",
)  # fmt: skip
@output_option
def dump(
    folder: Path,
    log_folder: Path | None,
    first: int | None,
    end: int | None,
    topic: str | None,
    queue_id: int | None,
    key: str | None,
    limit: int | None,
    path: Path | None,
    output: str,
) -> None:
    """Print records of STORE, or the contents of one file. The broker may run.

    Damaged records are left out: `gantry store verify` lists them.
    """
    from gantrymq.store.files.folder import StoreFolder
    from gantrymq.store.tools.dump import (
        RecordQuery,
        file_rows,
        ledger_records,
        record_row,
        records,
    )

    if queue_id is not None and topic is None:
        raise click.UsageError("--queue needs --topic")
    ledger = ledger_in(folder, log_folder)
    found = (
        ledger.folder if ledger is not None else StoreFolder(str(folder), path_or_none(log_folder))
    )
    if path is not None:
        print_each(islice(file_rows(found, path), limit), output)
        return
    query = RecordQuery(first=first, end=end, topic=topic, queue_id=queue_id, key=key)
    source = records(found, query) if ledger is None else ledger_records(ledger, query)
    rows = (_printed(record_row(each), output) for each in source)
    print_each(islice(rows, limit), output)


def _printed(row: Row, output: str) -> Row:
    body = body_fields(row.pop("body"))
    if output == "table":
        return {name: row[name] for name in TABLE_COLUMNS} | body
    return {**row, **body}


def print_each(rows: Iterable[Row] | Iterator[Row], output: str) -> None:
    """Print rows; lines of JSON as they come, the others at the end."""
    if output == "jsonl":
        for row in rows:
            print_line(row)
    else:
        print_rows(list(rows), output)
