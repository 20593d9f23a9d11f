"""Start a Spark session quickly, on this machine or on a cluster, and leave no files behind."""

import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from gantrymq.base.errors import ConfigError
from gantrymq.spark.runtime.bundle import PACKED
from gantrymq.spark.runtime.class_archive import archive_file, options_for
from gantrymq.spark.runtime.java import Java, find_java

QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The quick compiler and the small collector: jobs of seconds start in two thirds of the time.

What runs for minutes is three times slower with it, so it is only for who knows that he is brief.
"""

LOCAL: Final = "local[*]"
CONNECT: Final = "sc://"
CONNECT_PORT: Final = 15002
CONNECT_SECONDS_MAX: Final = 10.0
LOOPBACK: Final = "127.0.0.1"

DEFAULTS: Final[Mapping[str, str]] = {
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The quick way between JVM and Python, and times that mean the same everywhere."""

DEFAULTS_HERE: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}
"""Where driver and executors are one process: loopback only, and no more tasks than cores."""


def local_session(
    app: str,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    brief: bool = False,
) -> Any:
    """A session with these defaults and the format "rocketmq"; `settings` override them.

    It runs on this machine unless `master` names a cluster (`sc://` a server of Spark Connect), or
    the program was started by `spark-submit`, which sets it. `brief` is for work of seconds, such
    as tests: it starts sooner and computes slower.
    """
    try:
        from pyspark.sql import SparkSession  # Spark is loaded only when a session starts
    except ImportError as error:
        raise ConfigError("Spark is not installed: pip install 'gantrymq[spark]'") from error
    from gantrymq.spark import register

    builder = SparkSession.builder.appName(app)
    if master is not None and master.startswith(CONNECT):
        check_server(master)
        builder = builder.remote(master)
        chosen = dict(settings or {})
    else:
        chosen = local_settings(master, settings or {}, brief=brief)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def local_settings(
    master: str | None, settings: Mapping[str, str], *, brief: bool = False
) -> dict[str, str]:
    """All settings of a session that is not remote; sets the environment that Spark reads."""
    if is_submitted():
        return {**DEFAULTS, **({"spark.master": master} if master else {}), **settings}
    master = settings.get("spark.master") or master or LOCAL
    here = is_local(master)
    if here:
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        _plan_with(settings.get("spark.pyspark.python"))
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    warehouse = Path(tempfile.gettempdir()) / f"gantrymq-warehouse-{os.getpid()}"
    return {
        **DEFAULTS,
        **(DEFAULTS_HERE if here else {}),
        "spark.driver.extraJavaOptions": jvm_options(java, brief=brief),
        "spark.sql.warehouse.dir": str(
            warehouse
        ),  # else Spark makes a folder in the working directory
        "spark.master": master,
        **settings,
    }


def check_server(url: str) -> None:
    """Raise at once if no Spark Connect server is there; Spark itself tries for ten minutes."""
    place = urlsplit(url)
    try:
        host, port = place.hostname or "", place.port or CONNECT_PORT
        socket.create_connection((host, port), CONNECT_SECONDS_MAX).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no Spark Connect server answers at {url}: start one, or name another ({error})"
        ) from error


def jvm_options(java: Java, *, brief: bool) -> str:
    """Java's options for a quick start."""
    return f"{QUICK_JVM if brief else ''} {options_for(archive_file(java))}".strip()


def _plan_with(python: str | None) -> None:
    """Choose the Python of the executors, and let the driver's machine plan with it too.

    Spark starts the same program on both. Executors have the packages installed or in the
    bundle; on this machine PYTHONPATH leads to those of this process.
    """
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    packages = [find_spec(name) for name in ("gantrymq", *PACKED)]
    roots = [str(Path(each.origin).parent.parent) for each in packages if each and each.origin]
    known = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*filter(None, [known]), *roots]))


def is_submitted() -> bool:
    """Whether `spark-submit` started this program: then Java is up, and master and memory set."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_local(master: str) -> bool:
    """Whether executors are in the driver's own process."""
    return master == "local" or master.startswith("local[")


def active_session() -> Any:
    """The session that is open in this process, or None."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
