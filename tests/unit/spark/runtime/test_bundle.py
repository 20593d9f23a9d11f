"""The file for executors: what is in it, and that it is used."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gantrymq.cli.pipeline.bundle import bundle
from gantrymq.spark.runtime.bundle import bundle_settings


def test_the_small_one_is_this_package_alone(tmp_path: Path) -> None:
    """It can be imported as it is, by a Python that has the rest."""
    target = tmp_path / "gantrymq.zip"
    result = CliRunner().invoke(bundle, ["--into", str(target)])
    assert result.output == f"--conf spark.submit.pyFiles={target}\n"
    code = "import gantrymq.spark.source.rows as rows; print(rows.__file__)"
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(target)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert said.stdout.startswith(str(target))
    assert target.stat().st_size < 2_000_000
    assert [each.name for each in tmp_path.iterdir()] == ["gantrymq.zip"]


@pytest.mark.parametrize("name", ["gantrymq.whl", "gantrymq.tar", "zip"])
def test_a_name_says_what_it_is(tmp_path: Path, name: str) -> None:
    """Neither one nor the other: told, and nothing is written."""
    result = CliRunner().invoke(bundle, ["--into", str(tmp_path / name)])
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A line, no traceback."""
    result = CliRunner().invoke(bundle, ["--into", str(tmp_path / "no" / "b.zip")])
    assert result.exit_code == 1
    assert "cannot write" in result.output


def test_executors_find_what_was_unpacked() -> None:
    """Spark unpacks next to where they run, under the name after the sign."""
    settings = bundle_settings("/shared/gantrymq.tar.gz")
    assert settings["spark.archives"].endswith(f"#{settings['spark.executorEnv.PYTHONPATH']}")
