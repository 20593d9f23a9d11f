"""The servers under test as child processes, and what the system says about them."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from gantrymq.base.network import free_port

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
READY = re.compile(r"^gantrymq ready namesrv=(\S+) broker=(\S+) ")
READY_SECONDS_MAX, STOP_SECONDS_MAX = 60.0, 60.0
SCHEDULED = 2
"""CPUCLOCK_SCHED: nanoseconds that the scheduler counted."""


class NotReady(Exception):
    """A server ended, or stayed silent, before it served."""


class Ours:
    """`gantry up` on a store of its own."""

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        pure: bool = False,
        profile: Path | None = None,
        source: Path | None = None,
        has_console: bool = False,
        brokers: int = 1,
    ) -> None:
        """`source`: a folder to import the package from, in place of this tree's."""
        console = ("--console-port", "0") if has_console else ("--no-console",)
        self._options = (*console, "--brokers", str(brokers))
        self._settings, self._profile = settings or {}, profile
        self._environment = os.environ | ({"GANTRY_PURE": "1"} if pure else {})
        if source is not None:
            self._environment["PYTHONPATH"] = str(source)
        self.directory = Path(tempfile.mkdtemp(prefix="gantrymq-bench-"))
        self.store = self.directory / "data" / "broker-a" / "store"
        """Where the broker keeps its files; what lies there before the start is served."""
        self.namesrv = self.broker = ""
        """Of several brokers, `broker` is the first."""
        self.brokers: list[str] = []
        self.started_in = 0.0
        """Seconds from the start to the ready line."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Again after `kill`, too, on the same store; returns when it serves."""
        command = [
            str(BIN / "gantry"), "up", "--data", str(self.directory / "data"),
            "--namesrv-port", "0", "--broker-port", "0", *self._options,
        ]  # fmt: skip
        if self._settings:
            config = self.directory / "broker.conf"
            config.write_text("".join(f"{k}={v}\n" for k, v in self._settings.items()))
            command += ["--config", str(config)]
        self._environment |= _profiled("mqbroker", self._profile)
        began = time.perf_counter()
        with (self.directory / "stderr").open("wb") as stderr:
            self._child = subprocess.Popen(
                command, cwd=self.directory, env=self._environment, stdout=subprocess.PIPE,
                stderr=stderr, text=True,
            )  # fmt: skip
        try:
            self._await_ready()
        except BaseException:
            self.__exit__()
            raise
        self.started_in = time.perf_counter() - began

    def kill(self) -> None:
        """End all processes without a word, as a crash of each would."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()

    def _await_ready(self) -> None:
        watchdog = threading.Timer(READY_SECONDS_MAX, self._child.kill)
        watchdog.start()
        assert self._child.stdout is not None
        try:
            for line in self._child.stdout:
                if found := READY.match(line):
                    self.namesrv, self.brokers = found[1], found[2].split(",")
                    self.broker = self.brokers[0]
                    return
        finally:
            watchdog.cancel()
        raise NotReady((self.directory / "stderr").read_text()[-2000:])

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def pids(self) -> list[int]:
        """Every process of the cluster."""
        return [self._child.pid, *descendants(self._child.pid)]

    def memory_mib(self) -> float:
        """RssAnon over all processes: what would have to be swapped."""
        return sum(rss_anon_kib(pid) for pid in self.pids()) / 1024

    def cpu_seconds(self) -> float:
        """Processor time over all processes so far."""
        return sum(cpu_seconds(pid) for pid in self.pids())


class Slave:
    """`mqbroker` as a slave of a cluster's broker; can be stopped and started again."""

    def __init__(self, cluster: Ours) -> None:
        self._cluster = cluster
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it serves; it may not have found its master yet."""
        folder = self._cluster.directory / "slave"
        settings = {
            "brokerName": "broker-a", "brokerId": "1", "brokerRole": "SLAVE",
            "brokerIP1": "127.0.0.1", "bindAddress": "127.0.0.1", "listenPort": "0",
            "storePathRootDir": str(folder), "storeProfile": "dev", "logDirectory": str(folder),
            "haCopyWholeLog": "true",
        }  # fmt: skip
        folder.mkdir(exist_ok=True)
        config = folder / "slave.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._child = subprocess.Popen(
            [str(BIN / "mqbroker"), "-n", self._cluster.namesrv, "-c", str(config)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        _await_line(self._child, "boot success")

    def stop(self) -> None:
        if self._child is not None:
            _stop(self._child)
            self._child = None


class NameServerProcess(NamedTuple):
    """A name server alone, in a process of its own."""

    address: str
    pid: int


@contextlib.contextmanager
def our_name_server(profile: Path | None = None) -> Iterator[NameServerProcess]:
    """`mqnamesrv`, ready to serve."""
    with tempfile.TemporaryDirectory(prefix="gantrymq-bench-") as directory:
        port = free_port("127.0.0.1")
        settings = {
            "listenPort": port, "bindAddress": "127.0.0.1", "logDirectory": directory,
            "kvConfigPath": f"{directory}/kvConfig.json",
        }  # fmt: skip
        config = Path(directory) / "namesrv.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        child = subprocess.Popen(
            [str(BIN / "mqnamesrv"), "-c", str(config)], stdout=subprocess.PIPE, text=True,
            env=os.environ | _profiled("mqnamesrv", profile),
        )  # fmt: skip
        try:
            _await_line(child, "boot success")
            yield NameServerProcess(f"127.0.0.1:{port}", child.pid)
        finally:
            _stop(child)


def _profiled(program: str, profile: Path | None) -> dict[str, str]:
    """The environment in which this program leaves its profile in a file."""
    if profile is None:
        return {}
    # Every Python process of ours below this one finds `sitecustomize`; the named one profiles.
    return {
        "PYTHONPATH": str(ROOT / "bench" / "profiled"),
        "GANTRY_BENCH_PROFILE": str(profile),
        "GANTRY_BENCH_PROGRAM": program,
    }


def _await_line(child: "subprocess.Popen[str]", text: str) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if text in line:
            return
    raise NotReady(f"{child.args!r} ended before it served")


def _stop(child: "subprocess.Popen[str]") -> None:
    child.terminate()
    child.wait(STOP_SECONDS_MAX)
    assert child.stdout is not None
    child.stdout.close()


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                child = int(path.parent.name)
                found += [child, *descendants(child)]
    return found


def rss_anon_kib(pid: int) -> int:
    """Memory of a process that is not of a file: what would have to be swapped."""
    with contextlib.suppress(OSError):
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) if found else 0
    return 0


def cpu_seconds(pid: int) -> float:
    """Processor time of one process so far, with all its threads.

    /proc has it in ticks of 10 ms, too coarse for a short round. Linux makes a clock of the number
    of any process, as clock_getcpuclockid(3) does.
    """
    with contextlib.suppress(OSError):
        return time.clock_gettime(~pid << 3 | SCHEDULED)
    return 0.0


def prepare_real(heap: str = "1g") -> None:
    """Build what RocketMQ's own servers need; modules of the interop suite can be imported then."""
    sys.path.insert(0, str(ROOT / "tests" / "interop"))
    import real as launcher
    import toolchain

    toolchain.build_java()
    # The interop suite saves memory and start-up time; a comparison must not.
    launcher.JVM = (
        f"-Xms{heap}", f"-Xmx{heap}", "-XX:MaxDirectMemorySize=1g", "-XX:+UseG1GC",
        "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
        "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    )  # fmt: skip


class Theirs:
    """RocketMQ's name server and broker, with the heap and the log files of a real installation."""

    HEAP = "2g"
    SETTINGS: ClassVar[dict[str, str]] = {"mappedFileSizeCommitLog": str(1 << 30)}

    def __init__(self, version: str, settings: Mapping[str, str] | None = None) -> None:
        self._version, self._settings = version, {**self.SETTINGS, **(settings or {})}
        self.namesrv = self.broker = ""
        self.started_in = 0.0
        """Seconds until the broker was registered."""
        self._stack = contextlib.ExitStack()
        self._store: Path | None = None

    def __enter__(self) -> Self:
        prepare_real(self.HEAP)
        self.start()
        return self

    def start(self) -> None:
        """Again after `kill`, too, on the same store; returns when it serves."""
        import real as launcher

        self._cluster = launcher.RealCluster(
            self._version, settings=self._settings, store=self._store
        )
        began = time.perf_counter()
        self._stack.enter_context(self._cluster)
        self.started_in = time.perf_counter() - began
        self._store = self._cluster.store_dir
        self.namesrv, self.broker = self._cluster.namesrv, self._cluster.broker_addr

    def kill(self) -> None:
        """End both processes without a word, as a crash of each would."""
        for pid in self._cluster.pids:
            os.kill(pid, signal.SIGKILL)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def memory_mib(self) -> float:
        """RssAnon of both processes."""
        return sum(rss_anon_kib(pid) for pid in self._cluster.pids) / 1024

    def cpu_seconds(self) -> float:
        """Processor time of both processes so far."""
        return sum(cpu_seconds(pid) for pid in self._cluster.pids)


@contextlib.contextmanager
def real_name_server(version: str) -> Iterator[NameServerProcess]:
    """RocketMQ's own name server, without a broker."""
    prepare_real()
    import real as launcher

    with tempfile.TemporaryDirectory(prefix="gantrymq-bench-") as directory:
        port = free_port("127.0.0.1")
        settings = {
            "listenPort": str(port),
            "kvConfigPath": f"{directory}/kvConfig.json",
            "configStorePath": f"{directory}/namesrv.properties",
        }
        with launcher.start_java(
            version, "namesrv", launcher.NAMESRV_MAIN, settings, Path(directory)
        ) as process:
            yield NameServerProcess(f"127.0.0.1:{port}", process.pid)
