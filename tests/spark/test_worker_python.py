"""The Python of Spark's workers: one that cannot load this package is found out first."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import gantrymq.spark
from gantrymq.base.errors import ConfigError
from gantrymq.spark import explain, register
from gantrymq.spark.runtime.session import local_settings

pytestmark = pytest.mark.timeout(120)


def bare_python(folder: Path) -> Path:
    """The interpreter of this virtual environment outside of it: it has no packages."""
    program = folder / "python3"
    program.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


def test_workers_that_lack_this_package_are_found_out_first(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the first call, in one line that says what to set."""
    python = bare_python(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")

    with pytest.raises(ConfigError) as refused:
        register(spark)

    assert str(refused.value).startswith(
        f"Spark runs its workers with {python}, which has no gantrymq and no msgspec"
    )
    assert f"set PYSPARK_PYTHON={sys.executable} in the environment" in str(refused.value)
    assert "gantrymq.spark.session()" in str(refused.value)


def test_another_name_of_the_same_python_will_do(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is what it can load; the path of this Python is not even asked."""
    program = tmp_path / "mine"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    for chosen in (str(program), sys.executable, "/no/such/python"):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", chosen)
        register(spark)


def test_a_worker_without_this_package_is_explained() -> None:
    """Where nobody asked before: the last line of Spark's two hundred is put into words."""
    error = RuntimeError("x\nTraceback (most recent call last):\nModuleNotFoundError: No module "
                         "named 'gantrymq'")  # fmt: skip

    assert f"set PYSPARK_PYTHON={sys.executable}" in explain(error)


def test_a_session_of_ours_runs_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is first on PATH."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    local_settings(None, {})

    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_the_public_session_is_the_one_that_is_open(spark: Any) -> None:
    """`gantrymq.spark.session()` takes what is there, as Spark's own builder does."""
    assert spark is gantrymq.spark.session("again")
