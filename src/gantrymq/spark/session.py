"""A Spark session on this machine that is up soon."""

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The quick compiler and the small collector: jobs of seconds start in two thirds of the time."""

DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Loopback only, the quick way between JVM and Python, and times that mean the same everywhere."""


def local_session(
    app: str, *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> Any:
    """A session with these defaults and the format "rocketmq"; `settings` go before defaults."""
    from pyspark.sql import SparkSession  # only who starts a session needs Spark

    from gantrymq.spark import register

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in {**DEFAULTS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
