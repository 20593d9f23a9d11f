"""Topics as Spark tables and streams: `spark.read.format("rocketmq")` and `.readStream`.

The package `pyspark_gantrymq` lets Spark find the format by itself; `register` is for sessions
that look for nothing, for instance a remote one. `session` makes a session that has all it needs.
"""

from collections.abc import Mapping
from typing import Any, Final

from gantrymq.spark.explain import explain

__all__ = ["explain", "register", "session"]

_MARK: Final = "_gantrymq_listens"
"""A session that has the listener already: two would report everything twice."""


def register(spark: Any) -> None:
    """Make the format "rocketmq" known to this session, and its streams' progress to brokers.

    ConfigError says what to set when Spark's workers run a Python that cannot load it.
    """
    from gantrymq.spark.datasource import RocketMQDataSource  # Spark is loaded by who uses it
    from gantrymq.spark.python import check_python
    from gantrymq.spark.source.listener import ProgressListener

    check_python(spark)
    spark.dataSource.register(RocketMQDataSource)
    if not hasattr(spark, _MARK):
        spark.streams.addListener(ProgressListener())
        setattr(spark, _MARK, True)


def session(
    app: str = "gantrymq",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    brief: bool = False,
) -> Any:
    """A Spark session with the format "rocketmq", whose workers run this Python.

    On this machine unless `master` names a cluster; `settings` are Spark's, and go before the
    defaults. The same as `sessions.local_session`.
    """
    from gantrymq.spark.runtime.session import local_session  # Spark is loaded by who uses it

    return local_session(app, master=master, settings=settings, brief=brief)
