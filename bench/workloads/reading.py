"""A backlog of 1 KiB messages, read as fast as it goes."""

from bench import programs
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run

BACKLOG = 300_000
ORDERED_BACKLOG = 200_000


def walked(run: Run) -> list[Row]:
    """Whole queues pulled; every record walked and its checksum verified by the client's kernel."""
    with Ours(profile=run.profile) as cluster:
        count = int(programs.load(cluster.broker, "--count", run.scaled(BACKLOG))["count"])
        before = cluster.cpu_seconds()
        found = programs.drain(cluster.broker, "--count", count)
        cpu = cluster.cpu_seconds() - before
    return [
        Row("backlog-walk", "messages", found["tps"], "1/s", 100_000),
        Row("backlog-walk", "bytes", found["mb_per_second"], "MB/s"),
        Row("backlog-walk", "broker's processor time", cpu / count * 1e6, "us/message"),
    ]


def consumed(run: Run) -> list[Row]:
    """The same through `Consumer` with a handler that does nothing."""
    with Ours(profile=run.profile) as cluster:
        count = int(programs.load(cluster.broker, "--count", run.scaled(BACKLOG))["count"])
        found = programs.gantry("consumer", "--namesrv", cluster.namesrv, "--count", count)
    return [Row("backlog-consumer", "messages", found["tps"], "1/s", 30_000)]


def ordered(run: Run) -> list[Row]:
    """64 keys, one message a handler call: in order against all at once, in the same run."""
    topic, count = "ordered-bench", run.scaled(ORDERED_BACKLOG)
    with Ours(profile=run.profile) as cluster:
        common = (cluster.namesrv, "--topic", topic, "--count", count)
        programs.consume(*common, "--fill")
        at_once = programs.consume(*common)["tps"]
        in_order = programs.consume(*common, "--ordered")["tps"]
    return [
        Row("ordered", "messages at once", at_once, "1/s"),
        Row("ordered", "messages in order", in_order, "1/s"),
        Row("ordered", "in order against at once", in_order / at_once, "x", 0.5),
    ]
