"""A program with Spark Connect: no Java of its own, all through a server. Prints a JSON line."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from gantrymq.base.errors import GantryError
from gantrymq.spark import explain
from gantrymq.spark.runtime.session import local_session
from gantrymq.spark.runtime.tasks import run_tasks


def square(task: int) -> Iterator[Any]:
    yield pa.RecordBatch.from_pylist([{"square": task * task}])


def refuse(task: int) -> Iterator[Any]:
    raise GantryError(f"task {task} cannot: do this")
    yield


def streamed(spark: Any, options: dict[str, str], folder: str) -> int:
    """What a stream has brought into a table when it has caught up."""
    rows = spark.readStream.format("rocketmq").options(startingOffsets="earliest", **options).load()
    query = (
        rows.select("body").writeStream.format("parquet").option("path", f"{folder}/table")
        .option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    return int(spark.read.parquet(f"{folder}/table").count())


def written(spark: Any, options: dict[str, str]) -> int:
    """How many rows are in a topic after ten were written."""
    rows = spark.range(10).selectExpr("cast(id as string) as body")
    rows.write.format("rocketmq").options(**options).mode("append").save()
    return int(spark.read.format("rocketmq").options(**options).load().count())


def failure(spark: Any) -> str:
    try:
        run_tasks(spark, [1], refuse, "a int").collect()
    except Exception as error:
        return explain(error)
    return "nothing"


def main(url: str, namesrv: str, topic: str, folder: str) -> None:
    spark = local_session("client", master=url)
    options = {"nameServer": namesrv, "topic": topic}
    table = spark.read.format("rocketmq").options(**options).load()
    found = {
        "bodies": sorted(bytes(row.body).decode() for row in table.collect()),
        "written": written(spark, options | {"topic": f"{topic}-out"}),
        "streamed": streamed(spark, options, folder),
        "squares": sorted(
            row.square for row in run_tasks(spark, [2, 3], square, "square bigint").collect()
        ),
        "failure": failure(spark),
        "java": SparkContext._gateway is not None,
    }
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


main(*sys.argv[1:])
