"""A driver that copies a topic into another until it is killed, or to the end of what there is.

    python sink_child.py NAMESRV SOURCE TARGET CHECKPOINT all|follow MASTER

With a master of several tries a task fails now and then, after it has staged part of its rows.
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

from gantrymq.spark.runtime.session import local_session

FAILS = 0.2


def shaky(batches: Iterator[Any]) -> Iterator[Any]:
    """Hands the rows on, and breaks off now and then; never the last try of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    tried = context.attemptNumber() if context is not None else 3
    for batch in batches:
        yield batch
        if tried < 2 and random.random() < FAILS:
            raise RuntimeError("a task that fails now and then")


def main(namesrv: str, source: str, target: str, checkpoint: str, how: str, master: str) -> None:
    spark = local_session("sink", master=master, settings={"spark.ui.enabled": "false"})
    rows = (
        spark.readStream.format("rocketmq")
        .options(nameServer=namesrv, topic=source, startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", "300")
        .option("columns", "body")
        .load()
    )
    if "," in master:
        rows = rows.mapInArrow(shaky, "body binary")
    writer = (
        rows.writeStream.format("rocketmq")
        .options(nameServer=namesrv, topic=target, delivery="exactly-once")
        .option("sendBatchBytes", "2k")
        .option("checkpointLocation", checkpoint)
    )
    trigger = {"availableNow": True} if how == "all" else {"processingTime": "0 seconds"}
    writer.trigger(**trigger).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
