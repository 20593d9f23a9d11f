"""docs/operating.md says what the code does, and what it offers to install fits the commands."""

import configparser
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from gantrymq.base.config import WrittenSettings
from gantrymq.base.telemetry import FILE_BYTES_MAX, FILES_KEPT
from gantrymq.broker.settings.config import BrokerConfig, broker_config
from gantrymq.broker.settings.live_settings import FIXED, LIVE
from gantrymq.cli import servers
from gantrymq.cli.reference import reference
from gantrymq.nameserver.config import NameServerConfig, nameserver_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operating.md").read_text()
PROSE, _, REFERENCE = PAGE.partition("<!-- reference -->\n")
KEYS = {*BrokerConfig.__struct_encode_fields__, *NameServerConfig.__struct_encode_fields__}


def test_the_reference_is_printed_from_the_code() -> None:
    """
    Print it anew with `python -m gantrymq.cli.reference` when a setting changes.
    """
    assert REFERENCE == reference()


def test_every_setting_has_a_meaning() -> None:
    """
    A key without a word about it is no reference.
    """
    rows = [line.split(" | ") for line in REFERENCE.splitlines() if line.startswith("| `")]

    assert KEYS == {row[0].strip("|` ") for row in rows}
    assert [] == [row[0] for row in rows if len(row[-1].strip("| ")) < 10]


def test_what_changes_at_once_is_a_setting() -> None:
    """
    And not one that no call may change.
    """
    assert LIVE <= set(BrokerConfig.__struct_encode_fields__)
    assert not LIVE & FIXED


def test_keys_in_the_text_exist() -> None:
    """
    The rules about full disks named settings that nobody could set.
    """
    named = set(re.findall(r"\b[a-z]+(?:[A-Z][a-z]+)+\b", PROSE))

    assert named - KEYS <= {"updateBrokerConfig", "updateNamesrvConfig", "getBrokerConfig",
                            "deletedUnread", "brokerOverrides", "kvConfig"}  # fmt: skip
    assert {"diskMaxUsedSpaceRatio", "diskSpaceWarningLevelRatio", "deleteWhen"} <= named


def test_numbers_in_the_text_are_the_codes() -> None:
    """
    Sizes of logs, and when a full disk does what.
    """
    config = BrokerConfig()

    assert f"{FILE_BYTES_MAX >> 20} MiB is closed" in PROSE
    assert f"{(FILES_KEPT + 1) * FILE_BYTES_MAX >> 20} MiB a server" in PROSE
    for key, percent in (
        ("diskMaxUsedSpaceRatio", config.disk_max_used_space_ratio),
        ("diskSpaceCleanForciblyRatio", config.disk_space_clean_forcibly_ratio),
        ("diskSpaceWarningLevelRatio", config.disk_space_warning_level_ratio),
    ):
        assert f"{key} ({percent} %)" in PROSE


class TestWhatIsInstalled:
    @pytest.mark.parametrize("name", ["mqnamesrv", "mqbroker@"])
    def test_units_run_a_command_with_options_that_exist(self, name: str) -> None:
        """
        With a file of settings that the server takes.
        """
        unit = configparser.ConfigParser(interpolation=None)
        unit.read(ROOT / "deploy" / f"{name}.service")
        program, option, file = shlex.split(unit["Service"]["ExecStart"])
        command = getattr(servers, Path(program).name)
        sample = ROOT / "deploy" / Path(file.replace("%i", "broker-a")).name

        assert option in {text for each in command.params for text in each.opts}
        assert sample.exists()

    def test_sample_files_start(self) -> None:
        """
        In folders that the units make.
        """
        broker = broker_config(WrittenSettings.in_file(str(ROOT / "deploy" / "broker-a.conf")))
        namesrv = nameserver_config(WrittenSettings.in_file(str(ROOT / "deploy" / "namesrv.conf")))

        assert broker.store_path_root_dir.startswith("/var/lib/gantrymq/")
        assert broker.log_directory.startswith(namesrv.log_directory)

    @pytest.mark.parametrize("name", ["mqnamesrv", "mqbroker", "gantry"])
    def test_scripts_are_for_sh(self, name: str, tmp_path: Path) -> None:
        """
        From any folder; without an installation they say what to do.
        """
        script = ROOT / "bin" / name
        lonely = tmp_path / "bin" / name
        lonely.parent.mkdir()
        lonely.write_text(script.read_text())
        lost = subprocess.run(["sh", lonely], capture_output=True, check=False, text=True)
        assert (2, "") == (lost.returncode, lost.stdout)
        assert f"{tmp_path}/.venv/bin/{name} is missing: run 'make setup'" in lost.stderr
        installed = tmp_path / ".venv" / "bin" / name
        installed.parent.mkdir(parents=True)
        installed.write_text('#!/bin/sh\necho "$@"\n')
        installed.chmod(0o755)
        found = subprocess.run(
            ["sh", lonely, "-c", "a file"], capture_output=True, check=False, text=True, cwd="/"
        )

        assert (0, "-c a file\n") == (found.returncode, found.stdout)
        assert script.stat().st_mode & 0o111
