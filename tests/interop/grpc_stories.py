"""What the clients for gRPC do through the proxy, started early because most of it is waiting."""

import contextlib
from types import TracebackType
from typing import Any, Self

from clients import Client, GrpcJavaClient, GrpcPythonClient, Lines, Running
from proxy import Proxy

from gantrymq import sync
from gantrymq.model import GroupConfig

CLIENTS: list[Client] = [GrpcJavaClient(), GrpcPythonClient()]
TYPES = {"normal": "NORMAL", "dead": "NORMAL", "fifo": "FIFO", "delay": "DELAY",
         "transaction": "TRANSACTION"}  # fmt: skip
EXPECTED = {
    "normal": [f"normal-{index}" for index in range(6)],
    "push": [f"normal-{index}" for index in range(0, 6, 2)],
    "fifo": [f"fifo-{index % 2}-{index}" for index in range(8)],
    "delay": ["delay-0"],
    "transaction": ["transaction-commit", "transaction-unknown"],
}
FAILS_ONCE = "normal-2"
# After what is expected, for what fails for good and for what should not come.
LINGER_MS = 8000


def groups_of(client: Client) -> dict[str, str]:
    return {kind: f"{client.name}_{kind}_group" for kind in (*EXPECTED, "dead")}


def topics_of(client: Client) -> dict[str, str]:
    return {kind: f"{client.name}_{kind}" for kind in TYPES}


class GrpcStories:
    """One proxy and one program of each client; each has its own topics and groups."""

    def __init__(self, namesrv: str) -> None:
        self.namesrv = namesrv
        self._stack = contextlib.ExitStack()
        self._running: dict[str, Running] = {}
        self._finished: dict[str, Lines] = {}

    def of(self, client: Client) -> Lines:
        """Everything that a program printed, once it has ended."""
        if client.name not in self._finished:
            self._finished[client.name] = self._running[client.name].finish()
        return self._finished[client.name]

    def __enter__(self) -> Self:
        self._prepare()
        proxy = self._stack.enter_context(Proxy(self.namesrv))
        told: dict[str, Any] = {
            "endpoints": proxy.endpoints, "expected": EXPECTED, "fails": [FAILS_ONCE],
            "delayMs": 3000, "lingerMs": LINGER_MS, "timeout": 60,
        }  # fmt: skip
        for client in CLIENTS:
            started = client.start(
                "story", topics=topics_of(client), groups=groups_of(client), **told
            )
            self._running[client.name] = self._stack.enter_context(started)
        return self

    def _prepare(self) -> None:
        with sync.Admin(self.namesrv) as admin:
            for client in CLIENTS:
                for kind, name in topics_of(client).items():
                    admin.create_topic(name, queues=2, attributes={"message.type": TYPES[kind]})
                groups = groups_of(client)
                admin.update_group(
                    GroupConfig(group_name=groups["fifo"], consume_message_orderly=True)
                )
                admin.update_group(GroupConfig(group_name=groups["dead"], retry_max_times=1))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
