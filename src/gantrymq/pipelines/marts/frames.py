"""Functions over frames that several marts use."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn


def nothing(name: str, kind: str = "string") -> Column:
    """A column that is null in every row, such as the group of a row without one."""
    return fn.lit(None).cast(kind).alias(name)


def foremost(
    found: DataFrame, limit: int, *, of: Sequence[str], by: Sequence[str | Column]
) -> DataFrame:
    """At most `limit` rows of each kind, the first ones in an order."""
    order = Window.partitionBy(*of).orderBy(*by)
    ranked = found.withColumn("rank", fn.row_number().over(order))
    return ranked.where(fn.col("rank") <= limit).drop("rank")
