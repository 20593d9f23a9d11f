"""The real RocketMQ servers, and our own, as context managers of the same shape."""

import contextlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import toolchain
from process import Process, ProcessFailed

sys.path.insert(0, str(toolchain.HERE.parent / "dialogues"))

from wire import Connection

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS

BOOT_SECONDS_MAX = 90
NAMESRV_MAIN = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER_MAIN = "org.apache.rocketmq.broker.BrokerStartup"
CLUSTER_INFO = 106
COMMIT_LOG_FILE_BYTES = 64 * 1024 * 1024

# Sizes that both sides must agree on when they open each other's store, and times that a busy
# machine needs.
BROKER_SETTINGS: Mapping[str, str] = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": "broker-a",
    "brokerId": "0",
    "brokerIP1": "127.0.0.1",
    "mappedFileSizeCommitLog": str(COMMIT_LOG_FILE_BYTES),
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
}
JAVA_ONLY_SETTINGS: Mapping[str, str] = {
    "waitTimeMillsInSendQueue": "5000",
    "osPageCacheBusyTimeOutMills": "10000",
    "diskMaxUsedSpaceRatio": "95",
    # RocketMQ refuses SQL filters by default.
    "enablePropertyFilter": "true",
    # As it refuses recalls.
    "recallMessageEnable": "true",
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "1000",
    # A first registration that a busy machine missed is made up for sooner.
    "registerNameServerPeriod": "10000",
}
LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{file}</file>
    <encoder><pattern>%d %level %logger - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"""
JVM: tuple[str, ...] = (
    "-Xms256m",
    "-Xmx256m",
    "-Xmn64m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """A properties file as both brokers read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def broker_settings(store: Path, port: int, more: Mapping[str, str]) -> dict[str, str]:
    """The settings of one broker, ours or the real one."""
    return {
        **BROKER_SETTINGS,
        "listenPort": str(port),
        "haListenPort": str(port + 1),
        "storePathRootDir": str(store),
        "storePathCommitLog": str(store / "commitlog"),
        **more,
    }


MASTER = re.compile(rb'"brokerAddrs":\{"?0"?:')


def wait_until_registered(namesrv: str) -> None:
    """A broker on a busy machine may say it is up before the name server knows it as a master."""
    end = time.monotonic() + BOOT_SECONDS_MAX
    while time.monotonic() < end:
        with Connection(namesrv) as connection:
            if MASTER.search(connection.ask(CLUSTER_INFO).body):
                return
        time.sleep(0.1)
    raise ProcessFailed("the broker never registered at its name server")


class _Servers:
    """What every cluster here has: a directory, addresses, and children that end with it."""

    namesrv = ""
    broker_addr = ""

    def __init__(self, store: Path | None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="gantrymq-interop-"))
        self.store_dir = store or self.directory / "store"
        self._children = contextlib.ExitStack()
        self._broker: Process | None = None

    def kill_broker(self) -> None:
        """End the broker without a word, as a crash of its process would."""
        assert self._broker is not None
        self._broker.kill()

    def _start(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._children.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._children.__exit__(kind, error, trace)
        if error is None:
            shutil.rmtree(self.directory, ignore_errors=True)


class RealCluster(_Servers):
    """A RocketMQ name server and broker from their Maven jars."""

    def __init__(
        self,
        version: str,
        *,
        store: Path | None = None,
        settings: Mapping[str, str] | None = None,
        broker_port: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store)
        self.version = version
        self._settings = {**JAVA_ONLY_SETTINGS, **(settings or {})}
        self._broker_port = broker_port
        self._properties = properties or {}
        self.pids: list[int] = []
        """Of the name server, then of the broker."""

    def _start(self) -> None:
        namesrv_port = free_port("127.0.0.1")
        port = self._broker_port or free_port("127.0.0.1", OTHER_PORTS)
        self.namesrv, self.broker_addr = f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{port}"
        self._java(
            "namesrv",
            NAMESRV_MAIN,
            {
                "listenPort": str(namesrv_port),
                "kvConfigPath": str(self.directory / "kvConfig.json"),
                "configStorePath": str(self.directory / "namesrv.properties"),
            },
        )
        self._broker = self._java(
            "broker",
            BROKER_MAIN,
            broker_settings(self.store_dir, port, {"namesrvAddr": self.namesrv, **self._settings}),
        )
        if not self._properties:
            wait_until_registered(self.namesrv)

    def _java(self, part: str, main: str, settings: Mapping[str, str]) -> Process:
        process = start_java(self.version, part, main, settings, self.directory, self._properties)
        self._children.enter_context(process)
        self.pids.append(process.pid)
        return process


def start_java(
    version: str,
    part: str,
    main: str,
    settings: Mapping[str, str],
    directory: Path,
    properties: Mapping[str, str] | None = None,
) -> Process:
    """A server of RocketMQ that is up; what it logs lies in the directory."""
    kind = "namesrv" if "Namesrv" in main else "broker"
    logback = directory / "conf" / f"logback_{kind}.xml"
    logback.parent.mkdir(parents=True, exist_ok=True)
    logback.write_text(LOGBACK.format(file=directory / f"{kind}.log"))
    config = write_properties(directory / f"{part}.conf", settings)
    servers = {**toolchain.JAVA_SERVERS, **toolchain.NEWEST_SERVER}
    command = [
        "java",
        *JVM,
        f"-Duser.home={directory}",
        f"-Drocketmq.home.dir={directory}",
        *(f"-D{key}={value}" for key, value in (properties or {}).items()),
        "-cp",
        toolchain.java_class_path(servers[version]),
        main,
        "-c",
        str(config),
    ]
    process = Process(command, directory=directory, name=part)
    try:
        process.wait_for(lambda line: "boot success" in line, BOOT_SECONDS_MAX)
    except BaseException:
        process.kill()
        raise
    return process


READY = re.compile(r"^gantrymq ready namesrv=(\S+) broker=(\S+) console=(\S+)$")


class OurCluster(_Servers):
    """Our name server and broker, as `gantry up` starts them."""

    def __init__(
        self, *, settings: Mapping[str, str] | None = None, options: Sequence[str] = ()
    ) -> None:
        super().__init__(None)
        self._settings, self._options = settings or {}, options

    def _start(self) -> None:
        command = [
            our_program("gantry"),
            "up",
            "--data",
            str(self.store_dir),
            "--namesrv-port",
            "0",
            "--broker-port",
            "0",
            "--no-console",
            *self._options,
        ]
        if self._settings:
            config = write_properties(self.directory / "broker.conf", self._settings)
            command += ["--config", str(config)]
        process = Process(command, directory=self.directory, name="gantry")
        self._children.enter_context(process)
        line = process.wait_for(lambda text: READY.match(text) is not None, BOOT_SECONDS_MAX)
        found = READY.match(line)
        assert found is not None
        self.namesrv, self.broker_addr = found[1], found[2]


class OurServers(_Servers):
    """Our `mqnamesrv` and `mqbroker` on the same settings as the real ones, for shared stores."""

    def __init__(
        self,
        *,
        store: Path,
        settings: Mapping[str, str] | None = None,
        broker_port: int | None = None,
    ) -> None:
        super().__init__(store)
        self._settings = settings or {}
        self._broker_port = broker_port

    def _start(self) -> None:
        namesrv_port = free_port("127.0.0.1")
        port = self._broker_port or free_port("127.0.0.1", OTHER_PORTS)
        self.namesrv, self.broker_addr = f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{port}"
        namesrv = write_properties(
            self.directory / "namesrv.conf",
            {
                "listenPort": str(namesrv_port),
                "bindAddress": "127.0.0.1",
                "kvConfigPath": str(self.directory / "kvConfig.json"),
            },
        )
        broker = write_properties(
            self.directory / "broker.conf", broker_settings(self.store_dir, port, self._settings)
        )
        self._ours("mqnamesrv", ["-c", str(namesrv)])
        self._broker = self._ours("mqbroker", ["-n", self.namesrv, "-c", str(broker)])
        wait_until_registered(self.namesrv)

    def _ours(self, program: str, arguments: list[str]) -> Process:
        process = start_ours(program, arguments, self.directory)
        self._children.enter_context(process)
        return process


def start_ours(program: str, arguments: list[str], directory: Path) -> Process:
    """One of our servers that is up."""
    process = Process([our_program(program), *arguments], directory=directory, name=program)
    try:
        process.wait_for(lambda line: "boot success" in line, BOOT_SECONDS_MAX)
    except BaseException:
        process.kill()
        raise
    return process


def our_program(name: str) -> str:
    """One of our commands in the project's environment."""
    return str(toolchain.HERE.parent.parent / ".venv" / "bin" / name)
