"""Spark imports every top-level package named `pyspark_*` to find data sources: here is ours."""

from gantrymq.spark.datasource import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
