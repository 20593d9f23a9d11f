"""The process that fills a class archive: it uses a bit of everything in Spark, then exits Java.

The file holds the classes that were loaded until then.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

# ruff: noqa: N802 - the names of the methods are Spark's
from gantrymq.spark.runtime.session import QUICK_JVM, local_session


class Few(DataSource):  # type: ignore[misc, unused-ignore]
    """A data source of ten numbers, as a batch and as a stream."""

    @classmethod
    def name(cls) -> str:
        return "few"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: StructType) -> "FewRows":
        return FewRows()

    def streamReader(self, schema: StructType) -> "FewMore":
        return FewMore()


class FewRows(DataSourceReader):  # type: ignore[misc, unused-ignore]
    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(10))


class FewMore(DataSourceStreamReader):  # type: ignore[misc, unused-ignore]
    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": 10}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(10))


def main(archive: str) -> None:
    settings = {
        "spark.driver.extraJavaOptions": f'{QUICK_JVM} -XX:ArchiveClassesAtExit="{archive}"'
    }
    with tempfile.TemporaryDirectory(prefix="gantrymq-warm-") as name:
        folder = Path(name)
        settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
        spark = local_session("warm", master="local[2]", settings=settings)
        spark.dataSource.register(Few)
        spark.read.format("few").load().groupBy("number").count().collect()
        spark.range(100).mapInArrow(lambda batches: batches, "id bigint").collect()
        table = str(folder / "table")
        spark.range(100).selectExpr("id", "current_timestamp() t", "map('a', 'b') m").write.parquet(
            table
        )
        spark.read.parquet(table).createOrReplaceTempView("t")
        spark.sql(
            "select window(t, '1 minute'), count(*), percentile_approx(id, 0.5) from t group by 1"
        ).toPandas()
        spark.sql(
            "select from_json('{\"a\": 1}', 'a int') j, row_number() over (order by id) r "
            "from t a join t b using (id)"
        ).collect()
        query = (
            spark.readStream.format("few")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        gateway: Any = SparkContext._gateway
        spark.stop()
    with suppress(OSError):  # Java exits without an answer
        gateway.jvm.System.exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
