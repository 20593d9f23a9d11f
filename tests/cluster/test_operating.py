"""Starting servers where they cannot work: one line says what to do, and nothing is touched."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_cli import BIN, SECONDS_MAX, Up, gantry

from gantrymq.base.config import parse_properties
from gantrymq.cli.main import main

ON_FREE_PORTS = ("--namesrv-port", "0", "--broker-port", "0")


def server(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / name, *arguments], capture_output=True, check=False, text=True, timeout=SECONDS_MAX
    )


def contents(root: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with its size and the time of its last change.

    Without logs, and of a store only its lock: the broker that runs writes the rest.
    """
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".log"]
    found = [path for path in files if "store" not in path.parts or path.name == "lock"]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def one_line(stderr: str) -> str:
    (line,) = stderr.strip().splitlines()
    assert line.startswith("error: ")
    return line


class TestDataFolders:
    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        """
        One line for it, and for a folder below a file.
        """
        file = tmp_path / "file"
        file.write_text("mine")
        for data in (file, file / "below"):
            found = gantry("up", "--data", str(data), *ON_FREE_PORTS)
            assert 1 == found.returncode
            assert f"--data {data}" in one_line(found.stderr.decode())
        assert "mine" == file.read_text()

    def test_a_folder_that_cannot_be_written_to_is_named(self) -> None:
        """
        Also for the superuser.
        """
        found = gantry("up", "--data", "/proc/gantry", *ON_FREE_PORTS)
        said = one_line(found.stderr.decode())

        assert 1 == found.returncode
        assert "--data /proc/gantry cannot be used" in said
        assert "name a folder that can be written to" in said

    def test_a_broker_says_which_folder_it_cannot_use(self, tmp_path: Path) -> None:
        """
        Its store, its logs, its settings.
        """
        file = tmp_path / "file"
        file.write_text("mine")
        logs = f"-DlogDirectory={tmp_path}/logs"
        store = f"-DstorePathRootDir={tmp_path}/store"
        for arguments in (
            (f"-DstorePathRootDir={file}", logs), (store, f"-DlogDirectory={file}"),
            ("-c", f"{file}/x"), ("-c", str(tmp_path)),
        ):  # fmt: skip
            found = server("mqbroker", "-DlistenPort=0", "-DbindAddress=127.0.0.1", *arguments)
            assert 1 == found.returncode
            assert str(tmp_path) in one_line(found.stderr)

    def test_a_second_one_touches_nothing(self, tmp_path: Path) -> None:
        """
        No name server, no settings, no line in a log of the one that runs.
        """
        other = tmp_path / "other.conf"
        other.write_text("fileReservedTime=1\n")
        data = tmp_path / "data"
        with Up(data):
            before = contents(data)
            second = gantry("up", "--data", str(data), *ON_FREE_PORTS, "--config", str(other))
            broker = server(
                "mqbroker", f"-DstorePathRootDir={data}/broker-a/store", "-DlistenPort=0",
                f"-DlogDirectory={data}/logs/broker-a",
            )  # fmt: skip
            after = contents(data)

        assert (1, b"") == (second.returncode, second.stdout)
        assert re.search(r"locked by process \d+", one_line(second.stderr.decode()))
        assert 1 == broker.returncode
        assert "is locked by process" in one_line(broker.stderr)
        assert before == after
        assert {"lock", "broker.conf"} <= {Path(name).name for name in before}
        for log in ("namesrv.log", "broker-a/broker.log"):
            assert 1 == (data / "logs" / log).read_text().count("boot success")


class TestPorts:
    @pytest.mark.parametrize(
        "arguments, code",
        [
            (["up", "--namesrv-port", "99999"], 2),
            (["up", "--broker-port", "-1"], 2),
            (["nsaddr", "h:1", "--port", "99999"], 2),
            (["nsaddr", "h:1", "--host", "203.0.113.1"], 1),
            (["topic", "list", "-n", "127.0.0.1:99999"], 1),
            (["cluster", "-n", "127.0.0.1:1"], 1),
        ],
    )
    def test_that_cannot_be_are_an_error_of_one_line(self, arguments: list[str], code: int) -> None:
        """
        Whose fault it is shows in the exit code.
        """
        found = CliRunner().invoke(main, arguments)

        assert code == found.exit_code
        assert "This is a fault of" not in found.stderr
        assert "rror: " in found.stderr.strip().splitlines()[-1]


class TestSettings:
    def test_a_wrong_setting_names_file_and_line(self, tmp_path: Path) -> None:
        """
        Before anything is made in the data folder.
        """
        file = tmp_path / "b.conf"
        file.write_text("# mine\nfileReservedTime=soon\n")
        data = tmp_path / "data"
        found = gantry("up", "--data", str(data), *ON_FREE_PORTS, "--config", str(file))
        said = one_line(found.stderr.decode())

        assert 1 == found.returncode
        assert f"fileReservedTime=soon ({file}, line 2): write a whole number" in said
        assert not data.exists()
        assert said == one_line(server("mqbroker", "-c", str(file)).stderr)

    def test_a_changed_setting_outlives_a_restart_but_no_option(self, tmp_path: Path) -> None:
        """
        It is written to the broker's own file; `--config` stands above it.
        """
        change = (
            "import asyncio, sys; from gantrymq.client.admin.admin import Admin\n"
            "async def main():\n"
            "    async with Admin(sys.argv[1]) as admin:\n"
            "        for address in (await admin.masters()).values():\n"
            "            if len(sys.argv) > 2:\n"
            "                wanted = {'fileReservedTime': sys.argv[2]}\n"
            "                print(await admin.update_broker_config(address, wanted))\n"
            "            print((await admin.broker_config(address))['fileReservedTime'])\n"
            "asyncio.run(main())"
        )

        def ask(up: Up, *more: str) -> str:
            command = [sys.executable, "-c", change, up.namesrv, *more]
            return subprocess.run(command, capture_output=True, check=True, text=True).stdout

        own = tmp_path / "data" / "broker-a" / "broker.conf"
        given = tmp_path / "given.conf"
        given.write_text("fileReservedTime=12\n")
        with Up(tmp_path / "data") as first:
            assert "None\n50\n" == ask(first, "50")
        assert {"traceTopicEnable": "true", "fileReservedTime": "50"} == parse_properties(
            own.read_text()
        )
        assert "traceTopicEnable=true\n" == Path(f"{own}.bak").read_text()
        with Up(tmp_path / "data") as again:
            assert "50\n" == ask(again)
        with Up(tmp_path / "data", "--config", str(given)) as third:
            assert "12\n" == ask(third)
        assert "fileReservedTime=50" in own.read_text()

    @pytest.mark.parametrize("name", ["mqnamesrv", "mqbroker"])
    def test_help_has_a_short_name(self, name: str) -> None:
        """
        As in RocketMQ's scripts.
        """
        found = server(name, "-h")

        assert 0 == found.returncode
        assert "KEY=VALUE" in found.stdout

    @pytest.mark.parametrize(
        "text, said",
        [
            ("\nnosuch()\n", "NameError: name 'nosuch' is not defined"),
            ("\nint('x')\n", "ValueError: invalid literal"),
            ("\ndef (\n", "invalid syntax"),
        ],
    )
    def test_a_fault_of_an_app_names_its_line(
        self, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        Not ours, and no traceback through ours.
        """
        (tmp_path / "broken.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.delitem(sys.modules, "broken", raising=False)
        found = CliRunner().invoke(main, ["run", "broken:app", "-n", "127.0.0.1:1"])
        line = one_line(found.stderr)

        assert 1 == found.exit_code
        assert f"broken cannot be imported: {said}" in line
        assert "broken.py, line 2)" in line

    def test_a_fault_of_ours_is_a_line_too(self, tmp_path: Path) -> None:
        """
        It says how to see where it came from.
        """
        code = (
            "import click; from gantrymq.cli.common.guard import GuardedCommand\n"
            "@click.command(cls=GuardedCommand)\n"
            "def work():\n    {}['x']\n"
            "work()"
        )
        run = [sys.executable, "-c", code]
        quiet = subprocess.run(run, capture_output=True, check=False, text=True)
        loud = subprocess.run(
            run, capture_output=True, check=False, text=True,
            env=os.environ | {"GANTRY_TRACEBACK": "1"},
        )  # fmt: skip

        assert 1 == quiet.returncode
        assert "KeyError: 'x'. This is a fault of GantryMQ" in one_line(quiet.stderr)
        assert "Traceback" in loud.stderr
