"""Topics as Spark tables and streams: `spark.read.format("rocketmq")` and `.readStream`.

The package `pyspark_gantrymq` lets Spark find the format by itself; `register` is for sessions
that look for nothing, for instance a remote one.
"""

from typing import Any, Final

from gantrymq.spark.explain import explain

__all__ = ["explain", "register"]

_MARK: Final = "_gantrymq_listens"
"""A session that has the listener already: two would report everything twice."""


def register(spark: Any) -> None:
    """Make the format "rocketmq" known to this session, and its streams' progress to brokers."""
    from gantrymq.spark.datasource import RocketMQDataSource  # Spark is loaded by who uses it
    from gantrymq.spark.listener import ProgressListener

    spark.dataSource.register(RocketMQDataSource)
    if not hasattr(spark, _MARK):
        spark.streams.addListener(ProgressListener())
        setattr(spark, _MARK, True)
