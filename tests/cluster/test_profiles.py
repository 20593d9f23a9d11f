"""Profiles: which cluster a command asks, and how they are kept."""

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from test_cli import BIN, SECONDS_MAX

from gantrymq.cli.common.profiles import namesrv_of, profiles_path
from gantrymq.cli.main import main
from gantrymq.testing.threaded import GantryCluster

Run = Callable[..., Result]


@pytest.fixture
def run_with(tmp_path: Path) -> Run:
    """Runs `gantry` with a file of profiles of its own."""

    def run(*words: str, **env: str | None) -> Result:
        file = str(tmp_path / "gantry" / "profiles.toml")
        base = {"GANTRY_CONFIG": file, "NAMESRV_ADDR": None, "GANTRY_PROFILE": None}
        return CliRunner().invoke(main, words, env={**base, **env})

    return run


def test_they_are_added_shown_used_and_removed(run_with: Run, tmp_path: Path) -> None:
    """
    The first one becomes the current one; the file belongs to its owner alone.
    """
    assert "there is no profile" in run_with("profile", "list").stderr
    assert 0 == run_with("profile", "add", "prod", "-n", "a:1;b:2").exit_code
    run_with("profile", "add", "my test", "-n", "c:3")
    rows = json.loads(run_with("profile", "list", "-o", "json").stdout)
    assert [("my test", False, "c:3"), ("prod", True, "a:1;b:2")] == [
        (row["profile"], row["current"], row["namesrv"]) for row in rows
    ]
    run_with("profile", "use", "my test")
    assert "c:3" in run_with("profile", "show").stdout
    assert "a:1;b:2" in run_with("profile", "show", "prod").stdout
    file = tmp_path / "gantry" / "profiles.toml"
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    run_with("profile", "remove", "my test")
    shown = run_with("profile", "show")
    assert (1, True) == (shown.exit_code, "no profile is the current one" in shown.stderr)


@pytest.mark.parametrize(
    "words, env, asked",
    [
        (["-n", "option:1"], {"NAMESRV_ADDR": "env:1", "GANTRY_PROFILE": "two"}, "option:1"),
        (["--profile", "two"], {"NAMESRV_ADDR": "env:1"}, "two.invalid:1"),
        ([], {"NAMESRV_ADDR": "env:1", "GANTRY_PROFILE": "two"}, "two.invalid:1"),
        ([], {"NAMESRV_ADDR": "env.invalid:1"}, "env.invalid:1"),
        ([], {}, "one.invalid:1"),
    ],
)
def test_the_strongest_says_which_cluster(
    run_with: Run, words: list[str], env: dict[str, str], asked: str
) -> None:
    """
    The option, then the profile, then the environment, then the current profile.
    """
    run_with("profile", "add", "one", "-n", "one.invalid:1")
    run_with("profile", "add", "two", "-n", "two.invalid:1")
    found = run_with("topic", "list", *words, **env)
    assert 1 == found.exit_code
    assert f"connect to {asked} failed" in found.stderr


def test_every_command_and_mqadmin_use_the_current_one(
    run_with: Run, gantry: GantryCluster, tmp_path: Path
) -> None:
    """
    With no option and no variable both tools find the cluster.
    """
    run_with("profile", "add", "here", "-n", gantry.namesrv)
    assert 0 == run_with("send", "orders", "x").exit_code
    assert 0 == run_with("topic", "show", "orders").exit_code
    file = str(tmp_path / "gantry" / "profiles.toml")
    found = subprocess.run(
        [BIN / "mqadmin", "clusterList"], capture_output=True, text=True, timeout=SECONDS_MAX,
        env={"GANTRY_CONFIG": file}, check=True,
    )  # fmt: skip
    assert "broker-a" in found.stdout


def test_mistakes_are_one_line(run_with: Run, tmp_path: Path) -> None:
    """
    Unknown names, wrong addresses, and a file that is no profile file.
    """
    run_with("profile", "add", "one", "-n", "a:1")
    for words in (["use", "x"], ["remove", "x"], ["show", "x"]):
        found = run_with("profile", *words)
        assert (1, "error: there is no profile 'x'; profiles are one\n") == (
            found.exit_code, found.stderr,
        )  # fmt: skip
    assert 2 == run_with("topic", "list", "--profile", "x").exit_code
    wrong = run_with("profile", "add", "two", "-n", "nowhere")
    assert (1, True) == (wrong.exit_code, "write host:port" in wrong.stderr)
    (tmp_path / "gantry" / "profiles.toml").write_text("[[")
    broken = run_with("profile", "list")
    assert (1, True) == (broken.exit_code, "error: cannot read" in broken.stderr)
    (tmp_path / "gantry" / "profiles.toml").write_text("[profiles.x]\n")
    broken = run_with("topic", "list")
    assert (2, True) == (broken.exit_code, "write a table [profiles.NAME]" in broken.stderr)


def test_the_file_lies_where_users_settings_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Below $XDG_CONFIG_HOME, else below ~/.config; $GANTRY_CONFIG names another one.
    """
    assert Path("/x/gantrymq/profiles.toml") == profiles_path({"XDG_CONFIG_HOME": "/x"})
    assert Path.home() / ".config/gantrymq/profiles.toml" == profiles_path({})
    assert Path("/y.toml") == profiles_path({"GANTRY_CONFIG": "/y.toml", "XDG_CONFIG_HOME": "/x"})
    monkeypatch.setenv("NAMESRV_ADDR", "env:1")
    assert namesrv_of(None) is None
