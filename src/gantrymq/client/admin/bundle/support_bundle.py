"""Collects what people need who look into a trouble from afar: one part after the other.

A part that cannot be had is noted with the reason. Secrets are removed from everything.
"""

import json
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.bundle.redaction import redact, redact_text
from gantrymq.client.admin.doctor.checks import examine
from gantrymq.client.admin.doctor.collect import take_snapshot
from gantrymq.client.admin.doctor.machine import read_machine
from gantrymq.client.admin.doctor.machine_checks import examine_machine
from gantrymq.client.admin.groups.all_progress import progress_at
from gantrymq.client.core.errors import ClientError
from gantrymq.model import is_system_topic
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.headers.base import Nothing

LOG_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of the end of each log file."""
TOPICS_MAX: Final = 200
"""Topics of a broker whose statistics are asked."""
PACKAGES: Final = ("gantrymq", "msgspec", "click", "uvloop", "zstandard", "lz4")

Say = Callable[[str], None]


@dataclass(frozen=True)
class BundlePart:
    """A file of the bundle."""

    name: str
    data: bytes


class SupportBundle:
    """The parts of a bundle about one cluster and the machine that it is made on."""

    def __init__(self, admin: Admin, say: Say) -> None:
        self._admin, self._say = admin, say
        self.missing: dict[str, str] = {}
        """What could not be had, and why."""
        self._logs: dict[str, str] = {}

    async def parts(self) -> AsyncIterator[BundlePart]:
        """All parts; the last one says what is missing."""
        yield _json("versions.json", _versions())
        yield _json("machine.json", _machine())
        async for part in self._servers():
            yield part
        self._say("doctor")
        found = await self._had("doctor.json", self._doctor)
        if found is not None:
            yield found
        for part in self._log_files():
            yield part
        yield _json("missing.json", self.missing)

    async def _had(self, name: str, ask: Callable[[], Awaitable[Any]]) -> BundlePart | None:
        try:
            return _json(name, await ask())
        except (GantryError, OSError) as error:
            self.missing[name] = str(error)
            return None

    async def _doctor(self) -> list[dict[str, Any]]:
        return [each.row() for each in examine(await take_snapshot(self._admin))]

    async def _servers(self) -> AsyncIterator[BundlePart]:
        admin = self._admin
        self._say("name servers")
        questions: dict[str, Callable[[], Awaitable[Any]]] = {
            "cluster.json": admin.cluster,
            "topics.json": admin.topics,
            "name-servers.json": self._name_servers,
        }
        for name, ask in questions.items():
            part = await self._had(name, ask)
            if part is not None:
                yield part
        try:
            members = await admin.members()
        except GantryError as error:
            self.missing["brokers"] = str(error)
            return
        for broker, addresses in members.items():
            for number, address in sorted(addresses.items()):
                self._say(f"broker {broker}:{number} at {address}")
                for name, ask in self._questions(address, is_master=number == 0).items():
                    part = await self._had(f"brokers/{broker}-{number}/{name}", ask)
                    if part is not None:
                        yield part

    async def _name_servers(self) -> dict[str, dict[str, str]]:
        found = await self._admin.name_server_configs()
        for address, config in found.items():
            self._note_logs(f"namesrv-{address.replace(':', '-')}", config)
        return found

    def _questions(
        self, address: str, *, is_master: bool
    ) -> dict[str, Callable[[], Awaitable[Any]]]:
        admin = self._admin

        async def settings() -> dict[str, str]:
            config = await admin.broker_config(address)
            self._note_logs(f"{config.get('brokerName')}-{config.get('brokerId')}", config)
            return config

        async def offsets() -> Any:
            _, answer = await admin.instance.call(address, calls.GET_ALL_CONSUMER_OFFSET, Nothing())
            return fastjson.loads(answer.body)

        async def progress() -> dict[str, dict[str, Any]]:
            groups = list(await admin.group_configs(address))
            found = await progress_at(admin, address, groups)
            return {
                group: {str(queue): row for queue, row in rows.items()}
                for group, rows in found.items()
            }

        found: dict[str, Callable[[], Awaitable[Any]]] = {
            "settings.json": settings,
            "runtime.json": lambda: admin.broker_runtime(address),
            "ha.json": lambda: admin.ha_status(address),
        }
        if is_master:
            found |= {
                "topics.json": lambda: admin.topic_configs(address),
                "groups.json": lambda: admin.group_configs(address),
                "offsets.json": offsets,
                "progress.json": progress,
                "producers.json": lambda: admin.broker_producers(address),
                "statistics.json": lambda: self._statistics(address),
            }
        return found

    async def _statistics(self, address: str) -> dict[str, Any]:
        """What was sent to each topic in the last minute, hour and day."""
        found = await self._admin.topic_configs(address)
        names = sorted(name for name in found if not is_system_topic(name))
        asked = {
            name: await self._admin.broker_stats(address, "TOPIC_PUT_NUMS", name)
            for name in names[:TOPICS_MAX]
        }
        if len(names) > TOPICS_MAX:
            rest = f"{len(names) - TOPICS_MAX} topics beyond the first {TOPICS_MAX}"
            self.missing[f"statistics of {address}"] = rest
        return {"TOPIC_PUT_NUMS": {name: each for name, each in asked.items() if each is not None}}

    # logs

    def _note_logs(self, name: str, config: Mapping[str, str]) -> None:
        self._logs[name] = config.get("logDirectory", "")

    def _log_files(self) -> list[BundlePart]:
        """The end of each log that lies on this machine."""
        parts = []
        for server, folder in self._logs.items():
            files = sorted(Path(folder).glob("*.log")) if folder else []
            if not files:
                where = (
                    f"no log in {folder} on this machine" if folder else "logs to standard error"
                )
                self.missing[f"logs/{server}"] = where
            for path in files:
                name = f"logs/{server}/{path.name}"
                try:
                    parts.append(BundlePart(name, redact_text(_end_of(path)).encode()))
                except OSError as error:
                    self.missing[name] = error.strerror or str(error)
        if not self._logs:
            self.missing["logs"] = "no server said where it logs"
        return parts


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        size = path.stat().st_size
        file.seek(max(0, size - LOG_BYTES_MAX))
        return file.read(LOG_BYTES_MAX).decode("utf-8", "replace")


def _json(name: str, value: Any) -> BundlePart:
    plain = redact(msgspec.to_builtins(value, str_keys=True))
    text = json.dumps(plain, ensure_ascii=False, indent=2, default=str)
    return BundlePart(name, text.encode())


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _machine() -> dict[str, Any]:
    facts = read_machine(Path.home() / "store")
    rows = [finding.row() for finding in examine_machine(facts)]
    return {"facts": asdict(facts), "findings": rows}


class NothingOfTheCluster(ClientError):
    """The bundle was written, and has nothing of the cluster."""
