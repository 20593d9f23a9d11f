"""Transactions against plain sends through the same client, 1 KiB, asynchronous flush."""

import sys

from bench import programs
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run

SHARE = 1 / 3


def transactions(run: Run) -> list[Row]:
    with Ours(profile=run.profile) as cluster:
        command = [sys.executable, "-m", "bench.transact", cluster.namesrv]
        found = programs.run([*command, str(run.scaled(200_000))])
    plain, whole = found["plain"], found["transactions"]
    return [
        Row("transactions", "plain sends", plain, "1/s"),
        Row("transactions", "transactions", whole, "1/s"),
        Row("transactions", "share of the plain rate", whole / plain, "", SHARE),
    ]
