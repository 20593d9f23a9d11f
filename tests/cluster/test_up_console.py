"""`gantry up` with its console: a process of its own, which nobody needs to send and receive."""

import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_cli import BIN, READY, SECONDS_MAX, gantry

pytestmark = pytest.mark.timeout(120)

MEMORY_MIB_MAX = 140
"""Of everything that `gantry up` runs: supervisor, name server, broker and console."""


@contextmanager
def up(data: Path, *more: str) -> Iterator[tuple[str, str, "subprocess.Popen[str]"]]:
    """Name server and console of a cluster on free ports, and its process."""
    ports = ["--namesrv-port", "0", "--broker-port", "0"]
    ports += [] if "--console-port" in more else ["--console-port", "0"]
    with (data / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [BIN / "gantry", "up", "--data", data, *ports, *more],
            stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        ready = next(filter(None, map(READY.match, process.stdout)))
        yield ready[1], ready[3], process
    finally:
        process.terminate()
        assert 0 == process.wait(SECONDS_MAX)
        process.stdout.close()


def page(url: str, **headers: str) -> str:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        return str(answer.read().decode())


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def console_of(process: "subprocess.Popen[str]") -> int:
    """The process of the console."""
    (found,) = (
        child
        for child in children(process.pid)
        if b"gantrymq.cli.console" in Path(f"/proc/{child}/cmdline").read_bytes()
    )
    return found


def memory_mib(pid: int) -> float:
    """Memory of a process, shared pages counted in parts."""
    found = re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    assert found is not None
    return int(found[1]) / 1024


def test_the_ready_line_names_a_console_that_serves(
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """
    The console shows the brokers, and everything together takes less memory than promised.
    """
    began = time.monotonic()
    with up(tmp_path) as (namesrv, console, process):
        ready = time.monotonic() - began
        shown = page(f"{console}/c/local/overview")
        assert "broker-a" in shown
        assert namesrv in shown
        pids = [process.pid, *children(process.pid)]
        total = sum(map(memory_mib, pids))
        record_property("memory_mib", total)
        record_property("ready_seconds", ready)
        with capsys.disabled():
            sys.stdout.write(f"\ngantry up: ready after {ready:.1f} s, {total:.0f} MiB")
        assert len(pids) == 4
        assert total < MEMORY_MIB_MAX, f"{total:.0f} MiB"
    assert "" == (tmp_path / "stderr").read_text()


def test_a_cluster_goes_on_without_its_console(tmp_path: Path) -> None:
    """
    When the console dies a line says so, and messages are sent and stored as before.
    """
    with up(tmp_path) as (namesrv, _, process):
        subprocess.run(["kill", f"-{signal.SIGKILL}", str(console_of(process))], check=True)
        assert 0 == gantry("send", "orders", "kept", "--namesrv", namesrv).returncode
        assert process.poll() is None
    stderr = (tmp_path / "stderr").read_text()
    assert "the console ended with -9; the others go on" in stderr
    assert "Traceback" not in stderr


def test_a_taken_port_is_an_error_only_if_it_was_chosen(tmp_path: Path) -> None:
    """
    A console port that somebody else has is refused before anything starts.
    """
    (tmp_path / "one").mkdir()
    with up(tmp_path / "one") as (_, console, _):
        port = console.rpartition(":")[2]
        second = gantry("up", "--data", str(tmp_path / "two"), "--namesrv-port", "0",
                        "--broker-port", "0", "--console-port", port)  # fmt: skip
        assert 1 == second.returncode
        assert f"--console-port {port} is taken".encode() in second.stderr


def test_a_secure_cluster_has_a_secure_console(tmp_path: Path) -> None:
    """
    With --secure the console speaks TLS with the cluster's certificate, and asks for a key.
    """
    with up(tmp_path, "--secure") as (_, console, process):
        assert console.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "secure" / "authority.pem"))
        url = f"{console}/c/local/overview"
        with urllib.request.urlopen(url, context=trusted, timeout=SECONDS_MAX) as answer:
            shown = answer.read().decode()
            assert answer.geturl().startswith(f"{console}/login?next=")
        assert "Access key" in shown
        assert "broker-a" not in shown
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            page(url)
        words = Path(f"/proc/{console_of(process)}/cmdline").read_bytes()
        secret = (tmp_path / "secure" / "client.yml").read_text().split("secretKey: ")[1].split()[0]
        assert secret.encode() not in words
