"""The files of a broker that runs, through a real Spark."""

import time
from pathlib import Path
from typing import Any

import pytest
from sparkkit import BROKER, Processes, bodies_of, numbered
from storekeeping import keep_store, message

from gantrymq.base.errors import ConfigError
from gantrymq.spark.options.columns import COLUMNS
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.source.rows import open_rows
from gantrymq.store.files.folder import StoreFolder

pytestmark = pytest.mark.timeout(240)
WRITTEN_SECONDS_MAX = 20


def load(spark: Any, **options: str) -> Any:
    return spark.read.format("rocketmq").options(**options).load()


def wait_for_files(cluster: Processes, topic: str, counts: list[int]) -> None:
    """Queue entries reach their files about a second after the messages."""
    give_up = time.monotonic() + WRITTEN_SECONDS_MAX
    while time.monotonic() < give_up:
        folder = StoreFolder(str(cluster.store))
        ends = [folder.queue(topic, number).written() for number in range(len(counts))]
        if ends == counts:
            return
        time.sleep(0.05)
    raise AssertionError(f"{ends} of {counts} entries are in files")


def test_files_hold_what_the_broker_gives(spark: Any, cluster: Processes, topic: str) -> None:
    """Both ways lead to the same rows, in every column; the broker runs on."""
    cluster.create_topic(topic, queues=3)
    cluster.fill(topic, [40, 0, 7])
    wait_for_files(cluster, topic, [40, 0, 7])

    files = load(spark, via="store", storePath=str(cluster.store), topic=topic)
    wire = load(spark, nameServer=cluster.namesrv, topic=topic)

    assert numbered([40, 0, 7]) == bodies_of(files.collect())
    key = ["queueId", "queueOffset"]
    assert wire.select(*COLUMNS).orderBy(*key).collect() == files.orderBy(*key).collect()


def test_the_live_tail_comes_from_the_broker(spark: Any, cluster: Processes, topic: str) -> None:
    """What is not in files yet is not missing, and nothing comes twice."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [20, 20])
    wait_for_files(cluster, topic, [20, 20])
    cluster.fill(topic, [30, 5], first=20)

    both = load(
        spark, via="store", storePath=str(cluster.store), nameServer=cluster.namesrv, topic=topic
    )

    assert sorted(numbered([20, 20]) + numbered([30, 5], first=20)) == bodies_of(both.collect())


def test_a_stream_goes_from_files_to_the_tail(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Batch after batch, while messages arrive: each once."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [50, 50])
    query = (
        spark.readStream.format("rocketmq")
        .options(
            via="store", storePath=str(cluster.store), nameServer=cluster.namesrv, topic=topic,
            startingOffsets="earliest", maxOffsetsPerTrigger="30",
        )
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "rows"))
    )  # fmt: skip
    try:
        query.processAllAvailable()
        cluster.fill(topic, [10, 10], first=50)
        query.processAllAvailable()
    finally:
        query.stop()

    found = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted(numbered([50, 50]) + numbered([10, 10], first=50)) == bodies_of(found)


def test_a_folder_that_nobody_sees_is_an_error_or_left_to_the_broker(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """Executors elsewhere fall back to the wire if there is a name server, and say so if not."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])
    elsewhere = {"via": "store", "storePath": f"{BROKER}=/not/here", "topic": topic}

    with pytest.raises(Exception, match="/not/here is no store that can be seen from here"):
        load(spark, **elsewhere).collect()

    found = load(spark, nameServer=cluster.namesrv, **elsewhere).collect()
    assert numbered([3]) == bodies_of(found)


def test_the_store_of_another_broker_is_refused(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Files that know more than the broker are not its own; to mix them would mix up messages."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])
    keep_store(tmp_path, [message(0, f"{number}", topic=topic) for number in range(9)])
    options = parse_source_options(
        {"via": "store", "storePath": f"{BROKER}={tmp_path}", "nameServer": cluster.namesrv,
         "topic": topic}
    )  # fmt: skip

    with open_rows(options) as rows, pytest.raises(ConfigError, match="is not the store of"):
        rows.bounds()
