"""The real clients as callables: a verb and its arguments in, the lines it printed out."""

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import toolchain
from process import Process, ProcessFailed

# What a program may take beyond the time limit of its verb: start, stop, a busy machine.
GRACE_SECONDS = 45
TIMEOUT_SECONDS = 40

# Programs that live for seconds: little memory, and no compiler that takes its time.
SMALL_JVM = (
    "java",
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
)

Line = dict[str, Any]


class Lines(list[Line]):
    """What a program printed."""

    def of(self, event: str) -> list[Line]:
        """The lines of one kind."""
        return [line for line in self if line["event"] == event]

    @property
    def messages(self) -> list[Line]:
        return self.of("message")

    @property
    def sent(self) -> list[Line]:
        return self.of("sent")

    @property
    def bodies(self) -> list[str]:
        return [line["body"] for line in self.messages]

    @property
    def value(self) -> Any:
        """The answer of an admin verb."""
        (line,) = self.of("result")
        return line["value"]


def _parsed(lines: Sequence[str]) -> Lines:
    return Lines(json.loads(line) for line in lines if line.startswith('{"event":'))


class Running:
    """A verb under way, for tests that act while a consumer is up."""

    def __init__(self, process: Process, directory: Path, timeout: float) -> None:
        self._process, self._directory, self._timeout = process, directory, timeout

    def until(self, event: str) -> Line:
        """Wait for the next line of this kind."""
        wanted = f'{{"event":"{event}"'
        line = self._process.wait_for(lambda text: text.startswith(wanted), self._timeout)
        parsed: Line = json.loads(line)
        return parsed

    def finish(self) -> Lines:
        """Wait for the end and return every line of it."""
        status = self._process.wait(self._timeout)
        if status != 0:
            raise self._process.failure(f"ended with exit code {status}")
        return _parsed(self._process.seen)

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.__exit__(kind, error, trace)
        if error is None:
            shutil.rmtree(self._directory, ignore_errors=True)


class Client:
    """One real client library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def start(self, verb: str, **arguments: Any) -> Running:
        """Start a verb and return at once."""
        arguments.setdefault("timeout", TIMEOUT_SECONDS)
        directory = Path(tempfile.mkdtemp(prefix="gantrymq-client-"))
        command = [*self._command(directory), verb, json.dumps(arguments)]
        process = Process(
            command,
            directory=directory,
            name=f"{self.name}-{verb}",
            env=self._environment(directory),
        )
        return Running(process, directory, arguments["timeout"] + GRACE_SECONDS)

    def run(self, verb: str, **arguments: Any) -> Lines:
        """Run a verb to its end."""
        with self.start(verb, **arguments) as running:
            return running.finish()

    def _command(self, directory: Path) -> Sequence[str]:
        raise NotImplementedError

    def _environment(self, directory: Path) -> Mapping[str, str]:
        return {}


class JavaClient(Client):
    """Apache's Java client and admin tools of one release.

    A verb that is only run takes turns in one virtual machine that stays up; one that is started
    beside others has a machine of its own, as a member of a group would.
    """

    _resident: ClassVar[dict[str, Process]] = {}

    def __init__(self, version: str, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(f"java-{version}")
        self.version = version
        self._properties = [f"-D{key}={value}" for key, value in (properties or {}).items()]

    def with_properties(self, properties: Mapping[str, str]) -> "JavaClient":
        """The same client with system properties of Java, in machines of its own."""
        return JavaClient(self.version, properties)

    def run(self, verb: str, **arguments: Any) -> Lines:
        if self._properties:
            return super().run(verb, **arguments)
        timeout = arguments.setdefault("timeout", TIMEOUT_SECONDS) + GRACE_SECONDS
        process = self._resident.get(self.version) or self._start_resident()
        process.seen.clear()
        process.say(f"{verb} {json.dumps(arguments)}")
        try:
            end = process.wait_for(lambda line: line.startswith('{"event":"end"'), timeout)
            if json.loads(end)["status"] != 0:
                raise process.failure(f"failed to {verb}")
        except ProcessFailed:
            # What it left running must not meddle with the next verb.
            del self._resident[self.version]
            process.kill()
            raise
        return _parsed(process.seen)

    def _start_resident(self) -> Process:
        directory = Path(tempfile.mkdtemp(prefix="gantrymq-client-"))
        command = [*self._command(directory), "serve"]
        process = Process(command, directory=directory, name=self.name, listens=True)
        self._resident[self.version] = process
        return process

    @classmethod
    def stop_all(cls) -> None:
        """End the machines that stayed up."""
        while cls._resident:
            process = cls._resident.popitem()[1]
            process.stop()
            shutil.rmtree(process.errors.parent, ignore_errors=True)

    def _command(self, directory: Path) -> Sequence[str]:
        modules = toolchain.JAVA_CLIENTS | toolchain.NEWEST_CLIENT
        return [
            *SMALL_JVM,
            "-Xshare:auto",
            # A consumer of 5.x that missed its first turn would wait 20 s for the next one.
            "-Drocketmq.client.rebalance.waitInterval=5000",
            f"-Duser.home={directory}",
            f"-Drocketmq.client.logRoot={directory}",
            f"-Drocketmq.home.dir={_tools_home(directory)}",
            f"-Drocketmq.client.localOffsetStoreDir={directory}",
            *self._properties,
            "-cp",
            toolchain.java_class_path(modules[self.version]),
            "probe.Probe",
        ]


def _tools_home(directory: Path) -> Path:
    """The command line of 4.9 does nothing without settings for its log."""
    conf = directory / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "logback_tools.xml").write_text("<configuration/>")
    return directory


class GoClient(Client):
    """Apache's Go client."""

    def __init__(self) -> None:
        super().__init__("go")

    def _command(self, directory: Path) -> Sequence[str]:
        return [str(toolchain.go_program())]


class NodeClient(Client):
    """Alibaba's Node client."""

    def __init__(self) -> None:
        super().__init__("node")

    def _command(self, directory: Path) -> Sequence[str]:
        return ["node", str(toolchain.node_program())]


class RustClient(Client):
    """The Rust crate `rocketmq-client-rust`."""

    def __init__(self) -> None:
        super().__init__("rust")

    def _command(self, directory: Path) -> Sequence[str]:
        return [str(toolchain.rust_program())]

    def _environment(self, directory: Path) -> Mapping[str, str]:
        # It keeps offsets in the home directory.
        return {"HOME": str(directory)}


class PythonClient(Client):
    """A client library from PyPI, in a folder of its own."""

    def _command(self, directory: Path) -> Sequence[str]:
        return [sys.executable, str(toolchain.python_program(self.name)[0])]

    def _environment(self, directory: Path) -> Mapping[str, str]:
        # Their logs go to the home directory.
        return {"PYTHONPATH": str(toolchain.python_program(self.name)[1]), "HOME": str(directory)}


class CppClient(PythonClient):
    """Apache's C++ client, as the Python package `rocketmq` carries it."""

    def __init__(self) -> None:
        super().__init__("cpp")


class GrpcPythonClient(PythonClient):
    """Apache's Python client for gRPC."""

    def __init__(self) -> None:
        super().__init__("grpc")


class GrpcJavaClient(Client):
    """Apache's Java client for gRPC."""

    def __init__(self) -> None:
        super().__init__("grpc-java")

    def _command(self, directory: Path) -> Sequence[str]:
        return [
            *SMALL_JVM,
            f"-Duser.home={directory}",
            "-cp",
            toolchain.java_class_path(toolchain.JAVA_GRPC_CLIENT),
            "grpcprobe.Story",
        ]


class SpringApplication(Client):
    """An application of Spring Boot with RocketMQ's starter."""

    def __init__(self) -> None:
        super().__init__("spring")

    def _command(self, directory: Path) -> Sequence[str]:
        return [
            *SMALL_JVM,
            # As for Java's own clients.
            "-Drocketmq.client.rebalance.waitInterval=5000",
            f"-Duser.home={directory}",
            f"-Drocketmq.client.logRoot={directory}",
            "-cp",
            toolchain.java_class_path(toolchain.SPRING_APPLICATION),
            "springprobe.Application",
        ]


JAVA_CLIENTS = [JavaClient(version) for version in toolchain.JAVA_CLIENTS]
