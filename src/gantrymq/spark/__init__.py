"""Topics as Spark tables and streams: `spark.read.format("rocketmq")` and `.readStream`.

The package `pyspark_gantrymq` lets Spark find the format by itself; `register` is for sessions
that look for nothing, for instance a remote one.
"""

from typing import Any

from gantrymq.spark.explain import explain

__all__ = ["explain", "register"]


def register(spark: Any) -> None:
    """Make the format "rocketmq" known to this session."""
    from gantrymq.spark.datasource import RocketMQDataSource  # Spark is loaded by who uses it

    spark.dataSource.register(RocketMQDataSource)
