"""docs/operating.md and docs/broker-settings.md say what the code does; what is installed fits."""

import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from gantrymq.base.config import WrittenSettings
from gantrymq.base.telemetry import FILE_BYTES_MAX, FILES_KEPT
from gantrymq.broker.settings import rocketmq_keys
from gantrymq.broker.settings.config import BrokerConfig, broker_config
from gantrymq.broker.settings.live_settings import FIXED, LIVE
from gantrymq.cli import servers
from gantrymq.cli.pages.settings import BROKER, NAME_SERVER, reference
from gantrymq.nameserver.config import NameServerConfig, nameserver_config
from gantrymq.remoting.limits import LIMITS

ROOT = Path(__file__).parents[2]
PROSE = (ROOT / "docs" / "operating.md").read_text()
SETTINGS = ROOT / "docs" / "broker-settings.md"
KEYS = {*BrokerConfig.__struct_encode_fields__, *NameServerConfig.__struct_encode_fields__}


def rows(page: str) -> list[list[str]]:
    """The rows of keys, each as its cells."""
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]


def test_the_settings_page_is_printed_from_the_code() -> None:
    """
    After a change: `python -m gantrymq.cli.pages.settings > docs/broker-settings.md`.
    """
    assert SETTINGS.read_text() == reference()


def test_every_setting_has_a_group_and_a_sentence() -> None:
    """
    Each key of a server stands in one group of the page, with an effect that is a sentence.
    """
    for settings in (BROKER, NAME_SERVER):
        found = rows(settings.page())

        assert sorted(type(settings.defaults).__struct_encode_fields__) == sorted(
            key.strip("`") for key, *_ in found
        )
        assert [] == [row for row in found if len(row) != 5 or len(row[2].split()) < 4]
        assert [] == [key for key, _, effect, *_ in found if not effect.endswith(".")]
    assert 10 <= BROKER.page().count("\n### ")


def test_every_limit_stands_on_the_page_of_security() -> None:
    """
    The table of limits in docs/security.md names each of them.
    """
    page = (ROOT / "docs" / "security.md").read_text()

    assert [] == [key for key in LIMITS if f"`{key}`" not in page]


def test_what_differs_from_rocketmq_is_a_setting() -> None:
    """
    The lists of keys that are ours, and of other defaults, name keys that exist, and no key twice.
    """
    for settings in (BROKER, NAME_SERVER):
        keys = set(type(settings.defaults).__struct_encode_fields__)

        assert settings.ours.keys() | settings.other_defaults.keys() <= keys
        assert not settings.ours.keys() & settings.other_defaults.keys()
    assert not rocketmq_keys.OURS.keys() & rocketmq_keys.IGNORED_KEYS
    assert not set(BrokerConfig.__struct_encode_fields__) & rocketmq_keys.IGNORED_KEYS


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
                            "deletedUnread", "brokerOverrides", "kvConfig", "haStatus",
                            "slavesInSync", "inSync", "behindBytes"}  # fmt: skip
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

    def test_the_slave_is_one_of_the_master(self) -> None:
        """
        With ports and folders of its own, should both run on one machine.
        """
        master, slave = (
            broker_config(WrittenSettings.in_file(str(ROOT / "deploy" / f"{name}.conf")))
            for name in ("broker-a", "broker-a-s")
        )
        shared = [
            (
                each.broker_name,
                each.broker_cluster_name,
                each.namesrv_addr,
                each.store.segment_bytes,
            )
            for each in (master, slave)
        ]

        assert shared[0] == shared[1]
        assert (False, True) == (master.is_slave, slave.is_slave)
        assert 4 <= abs(master.listen_port - slave.listen_port)
        assert master.store_path_root_dir != slave.store_path_root_dir

    def test_the_member_of_a_raft_group_is_one(self) -> None:
        """
        Its own address is the one that the others have under its id.
        """
        member = broker_config(WrittenSettings.in_file(str(ROOT / "deploy" / "raft-n0.conf")))
        identity = member.group_identity

        assert identity.me == "n0"
        assert len(identity.members) == 3
        assert identity.addresses["n0"][0] == member.broker_ip1

    @pytest.mark.parametrize("file", sorted((ROOT / "deploy").glob("*.conf")), ids=lambda f: f.name)
    def test_files_stay_in_the_folders_of_their_unit(self, file: Path) -> None:
        """
        A unit may write nowhere else; each key is one that its server knows and does not ignore.
        """
        unit = configparser.ConfigParser(interpolation=None)
        unit.read(ROOT / "deploy" / "mqbroker@.service")
        writable = [
            f"/var/lib/{unit['Service']['StateDirectory']}/",
            f"/var/log/{unit['Service']['LogsDirectory']}",
        ]
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        settings = dict(line.split("=", 1) for line in lines if line)

        assert settings.keys() <= KEYS
        for value in settings.values():
            assert not value.startswith("/") or any(value.startswith(each) for each in writable)

    def test_the_image_runs_a_server_with_settings_that_exist(self) -> None:
        """
        The image copies files that are there, and so do the commands on the page.
        """
        lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
        sources = [
            source
            for line in lines
            if line.startswith("COPY ") and "--from" not in line
            for source in line.split()[1:-1]
        ]
        (command,) = [line.removeprefix("CMD ") for line in lines if line.startswith("CMD ")]
        program, *arguments = json.loads(command)
        told = re.findall(r"-D(\w+)=", PROSE.split("## Containers")[1])

        assert all((ROOT / source).exists() for source in sources)
        assert {"pyproject.toml", "setup.py", "src"} <= set(sources)
        assert hasattr(servers, program)
        assert {each.removeprefix("-D").split("=")[0] for each in arguments} <= KEYS
        assert set(told) <= KEYS
        assert {"brokerIP1", "kvConfigPath"} <= set(told)

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
