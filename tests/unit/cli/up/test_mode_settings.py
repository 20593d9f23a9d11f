"""The brokers that `gantry up` runs together."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gantrymq.base.config import WrittenSettings, parse_properties
from gantrymq.broker.settings.config import broker_config
from gantrymq.cli.main import main
from gantrymq.cli.up.modes import MODES, OWN_KEYS, TRACE, masters

CONF = Path(__file__).parents[4] / "conf"
PLACES = ("listenPort", "namesrvAddr", "storePathRootDir")
"""What `gantry up` chooses."""


def test_conf_has_a_folder_for_each_mode() -> None:
    """No mode without files, no files without a mode."""
    assert MODES.keys() == {path.name for path in CONF.iterdir() if path.is_dir()}


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_is_what_its_files_say(mode: str) -> None:
    """A file a broker, with the same settings but for where things are; only the trace topic is on
    besides."""

    def same(found: dict[str, str]) -> dict[str, str]:
        return {key: value for key, value in found.items() if key not in (*TRACE, *PLACES)}

    files = {path.stem: parse_properties(path.read_text()) for path in (CONF / mode).iterdir()}

    assert {name: same(found) for name, found in files.items()} == {
        setup.folder: same(setup.defaults | setup.identity) for setup in MODES[mode]
    }
    for found in files.values():
        broker_config(WrittenSettings(found))


@pytest.mark.parametrize("mode", MODES)
def test_a_broker_takes_the_settings_of_a_mode(mode: str) -> None:
    """Masters come first; a slave has the name of a master that stands before it."""
    configs = [broker_config(WrittenSettings(m.defaults | m.identity)) for m in MODES[mode]]
    roles = [config.is_slave for config in configs]
    names = [config.broker_name for config in configs]

    assert sorted(roles) == roles
    assert set(names) == {name for name, is_slave in zip(names, roles, strict=True) if not is_slave}
    assert len({setup.folder for setup in MODES[mode]}) == len(configs)


def test_masters_have_names_of_their_own() -> None:
    """Letters as far as they go, then numbers."""
    names = [setup.broker_name for setup in masters(28)]

    assert ["broker-a", "broker-z", "broker-26", "broker-27"] == [names[0], *names[25:]]
    assert len(set(names)) == 28


def test_a_mode_says_how_many_brokers_there_are(tmp_path: Path) -> None:
    """--brokers beside it is an error of usage, and nothing is made."""
    data = tmp_path / "data"
    words = ["up", "--mode", "2m-noslave", "--brokers", "2", "--data", str(data)]
    found = CliRunner().invoke(main, words)

    assert 2 == found.exit_code
    assert "--mode 2m-noslave says which brokers run; leave --brokers out" in found.stderr
    assert not data.exists()


@pytest.mark.parametrize("key", OWN_KEYS)
def test_a_file_for_all_has_nothing_of_one_broker(key: str, tmp_path: Path) -> None:
    """The error names the file, the line and what to do."""
    file, data = tmp_path / "b.conf", tmp_path / "data"
    file.write_text(f"fileReservedTime=1\n{key}=1\n")
    words = ["up", "--mode", "2m-2s-sync", "--config", str(file), "--data", str(data)]
    found = CliRunner().invoke(main, words)

    assert 2 == found.exit_code
    assert f"{key}=1 ({file}, line 2): --mode 2m-2s-sync gives each" in found.stderr
    assert not data.exists()


def test_an_unknown_mode_names_those_that_exist() -> None:
    """As for every choice."""
    found = CliRunner().invoke(main, ["up", "--mode", "3m"])

    assert 2 == found.exit_code
    assert all(mode in found.stderr for mode in MODES)
