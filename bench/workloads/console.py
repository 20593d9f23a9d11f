"""Pages of the console on a large cluster, while messages are sent to it."""

import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from bench import programs
from bench.rows import Row
from bench.servers import BIN, Ours, cpu_seconds
from bench.workloads import Run
from gantrymq import Admin
from gantrymq.cli.load import run_fast
from gantrymq.model import GroupConfig, TopicConfig
from gantrymq.protocol import calls
from gantrymq.protocol.headers.messages import UpdateConsumerOffsetRequest

TOPICS, GROUPS = 5_000, 2_000
AT_ONCE = 500
RATE = 5_000
PAGES = ("overview", "overview/findings", "topics", "topics?search=99", "groups", "alarms")
ROUNDS, ROUNDS_QUICK = 5, 2
SECONDS_ALONE, SECONDS_ALONE_QUICK = 10.0, 2.0
SETTLE_SECONDS = 3.0
LOOK_SECONDS = 1.0
"""Between two pages: somebody reads them."""
CPU_MS_MAX, P99_MS_MAX = 300.0, 20.0
ANSWER_SECONDS_MAX = 30.0


def console(run: Run) -> list[Row]:
    """5,000 topics, 2,000 groups; every page again and again, the sends never stop."""
    rounds, cpu = ROUNDS_QUICK if run.quick else ROUNDS, dict[str, list[float]]()
    with Ours(profile=run.profile) as cluster:
        run_fast(_fill(cluster.namesrv, cluster.broker))
        with programs.asked("pace", cluster.namesrv, RATE) as sends:
            time.sleep(SETTLE_SECONDS)
            sends.ask()
            time.sleep(SECONDS_ALONE_QUICK if run.quick else SECONDS_ALONE)
            alone = sends.ask()
            with _process(cluster.namesrv) as (url, pid):
                time.sleep(SETTLE_SECONDS)
                sends.ask()
                for _ in range(rounds):
                    for page in PAGES:
                        before = cpu_seconds(pid)
                        with urllib.request.urlopen(
                            f"{url}/c/many/{page}", timeout=ANSWER_SECONDS_MAX
                        ) as answer:
                            answer.read()
                        cpu.setdefault(page, []).append(cpu_seconds(pid) - before)
                        time.sleep(LOOK_SECONDS)
                beside = sends.ask()
    return [
        Row("console", "no console: send p99", alone["p99_ms"], "ms"),
        Row("console", "pages are looked at: send p99", beside["p99_ms"], "ms", P99_MS_MAX, True),
        *(
            Row(
                "console", f"{page}: processor time", statistics.median(spent) * 1000, "ms",
                CPU_MS_MAX, True,
            )
            for page, spent in cpu.items()
        ),
    ]  # fmt: skip


@contextmanager
def _process(namesrv: str) -> Iterator[tuple[str, int]]:
    """A console, its address and process id."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["console", "--namesrv", f"many={namesrv}", "--port", "0", "--data", folder]
        child = subprocess.Popen([BIN / "gantry", *words], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        try:
            yield child.stdout.readline().split()[-1], child.pid
        finally:
            child.terminate()
            child.wait()
            child.stdout.close()


async def _fill(namesrv: str, broker: str) -> None:
    """Topics with a queue each, and groups that have read two of them to their end."""
    topics = [f"topic-{number:04}" for number in range(TOPICS)]
    async with Admin(namesrv) as admin:
        for at in range(0, TOPICS, AT_ONCE):
            configs = [
                TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1)
                for name in topics[at : at + AT_ONCE]
            ]
            await admin.put_topics(broker, configs)
        for at in range(0, GROUPS, AT_ONCE):
            groups = [GroupConfig(group_name=f"group-{at + n:04}") for n in range(AT_ONCE)]
            await admin.put_groups(broker, groups)
        for number in range(GROUPS):
            for topic in (topics[number], topics[number + GROUPS]):
                header = UpdateConsumerOffsetRequest(
                    consumer_group=f"group-{number:04}", topic=topic, queue_id=0, commit_offset=0
                )
                await admin.instance.call(broker, calls.UPDATE_CONSUMER_OFFSET, header)
