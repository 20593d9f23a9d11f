"""`gantry pipeline tables`: what archives there are in a folder."""

from dataclasses import asdict
from pathlib import Path

import click

from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import output_option, print_rows
from gantrymq.cli.common.times import shown_or_ms


@click.command("tables", cls=GuardedCommand)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@output_option
def tables(folder: Path, output: str) -> None:
    """List the archives in the folders of FOLDER: their topics, rows, bytes and times.

    As JSON it tells where the next run goes on in each queue, too. It reads the
    tables' logs only, and needs no Spark. The exit code is 1 if one cannot be
    read.
    """
    from gantrymq.pipelines.lake.standing import tables_below

    found = tables_below(folder)
    people = output == "table"
    rows = []
    for each in found:
        row = asdict(each)
        topics = ", ".join(each.topics) if people else list(each.topics)
        first, last = (
            None if ms is None else shown_or_ms(ms, people) for ms in (each.first_ms, each.last_ms)
        )
        kept = ("name", "format", "queues", "rows", "size", "files", "trouble")
        rows.append(
            {key: row[key] for key in kept} | {"topics": topics, "first": first, "last": last}
        )
        if not people:
            rows[-1]["positions"] = [
                [queue.topic, queue.broker_name, queue.queue_id, at]
                for queue, at in each.positions.items()
            ]
    print_rows(rows, output)
    if any(each.trouble for each in found):
        raise SystemExit(1)
