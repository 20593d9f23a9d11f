"""A real standalone cluster of Spark on this machine: a master and two workers, each a process."""

import os
import re
import signal
import subprocess
import time
import venv
from pathlib import Path

import pyspark

from gantrymq.spark.runtime.java import find_java
from gantrymq.spark.runtime.session import LOOPBACK, QUICK_JVM, jvm_options

UP_SECONDS_MAX = 60.0
WORKERS = 2
HOME = Path(pyspark.__file__).parent


class Standalone:
    """Master and workers; their executors run with a Python that has no packages at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        venv.create(folder / "bare", symlinks=True)
        self.python = folder / "bare" / "bin" / "python"
        try:
            self._start("master", "Master")
            self.master = self._said("master", r"Starting Spark master at (spark://\S+)")
            for number in range(WORKERS):
                self._start(f"worker{number}", "Worker", "--cores", "2", "--memory", "1g",
                            "--work-dir", str(folder / f"work{number}"), self.master)  # fmt: skip
            for number in range(WORKERS):
                self._said(f"worker{number}", "(Successfully registered with master)")
        except BaseException:
            self.close()
            raise

    def _start(self, name: str, kind: str, *words: str) -> None:
        """A daemon of Spark's in a process group of its own; what it says goes into a file."""
        environ = os.environ | {
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
            "SPARK_NO_DAEMONIZE": "1",
        }
        place = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        command = [str(HOME / "bin" / "spark-class"), place, "--host", LOOPBACK, "--port", "0"]
        log = self._folder / f"{name}.log"
        with log.open("wb") as out:
            child = subprocess.Popen(
                [*command, "--webui-port", "0", *words],
                env=environ, cwd=self._folder, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)

    def _said(self, name: str, pattern: str) -> str:
        """What a daemon says about itself when it is up."""
        log, end = self._folder / f"{name}.log", time.monotonic() + UP_SECONDS_MAX
        while time.monotonic() < end:
            found = re.search(pattern, log.read_text())
            if found is not None:
                return found[1]
            time.sleep(0.05)
        raise AssertionError(f"{name} is not up:\n{log.read_text()}")

    def settings(self) -> dict[str, str]:
        """What a session on this cluster needs."""
        return {
            "spark.master": self.master,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": str(WORKERS),
            "spark.driver.extraJavaOptions": jvm_options(find_java(), brief=True),
            "spark.executor.extraJavaOptions": jvm_options(find_java(), brief=True),
            "spark.pyspark.python": str(self.python),
            "spark.sql.shuffle.partitions": "2",
        }

    def executors(self) -> list[int]:
        """The processes of executors, by their parents: no other program's are among them."""
        workers = {child.pid for child in self._children[1:]}
        found = []
        for entry in Path("/proc").iterdir():
            try:
                stat, words = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            if parent in workers and b"CoarseGrainedExecutorBackend" in words:
                found.append(int(entry.name))
        return sorted(found)

    def close(self) -> None:
        """End everything that was started here, executors included."""
        for child in self._children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
