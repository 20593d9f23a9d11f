"""Topics as Spark tables and streams: `spark.read.format("rocketmq")` and `.readStream`.

The package `pyspark_gantrymq` lets Spark find the format by itself; `register` is for sessions
that do not search for formats, for instance a remote one. `session` makes a session that has all
it needs.
"""

from collections.abc import Mapping
from typing import Any, Final

from gantrymq.spark.explain import explain

__all__ = ["explain", "register", "session"]

_MARK: Final = "_gantrymq_listens"
"""A session that has the listener already: two would report everything twice."""


def register(spark: Any) -> None:
    """Register the format "rocketmq", and a listener that reports the progress of streams.

    Raises ConfigError, which says what to set, if the Python of Spark's workers lacks this package.
    """
    from gantrymq.spark.datasource import RocketMQDataSource  # Spark is loaded only when it is used
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

    It runs on this machine unless `master` names a cluster; `settings` are Spark's, and override
    the defaults. The same as `sessions.local_session`.
    """
    from gantrymq.spark.runtime.session import local_session  # Spark is loaded only when it is used

    return local_session(app, master=master, settings=settings, brief=brief)
