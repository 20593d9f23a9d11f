"""The clients of a cluster: the program with our client, and the Java writer if there is one."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos.history import Send, parse_send
from chaos.network import Network, end, environment

HOST: Final = "clients"
ANSWER_SECONDS_MAX: Final = 60.0
END_SECONDS_MAX: Final = 1.0


class ClientFailed(Exception):
    """A program could not do what it was asked to; the text says why."""


class Child:
    """A program that is asked by lines and answers by lines."""

    def __init__(self, network: Network, command: Sequence[str], errors: Path) -> None:
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                network.command(HOST, command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(),
                text=True,
                start_new_session=True,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self, seconds: float = ANSWER_SECONDS_MAX) -> str:
        """The next line of the program."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise ClientFailed(f"no answer within {seconds:.0f} s") from None
        if line is None:
            raise ClientFailed("the program has ended")
        return line

    def close(self) -> None:
        """A writer may still be at work: nothing is gained by waiting for it."""
        end(self._process, END_SECONDS_MAX)


class OurClient:
    """The program with our client."""

    def __init__(self, network: Network, namesrv: str, folder: Path) -> None:
        command = [sys.executable, "-m", "chaos.client_program", namesrv]
        self._child = Child(network, command, folder / "client.stderr")
        self._asked = 0
        self._answers: dict[int, dict[str, Any]] = {}

    def submit(self, do: str, **arguments: object) -> int:
        """Ask for something; `answer` waits for it."""
        self._asked += 1
        self._child.say(json.dumps({"do": do, "id": self._asked, **arguments}))
        return self._asked

    def answer(self, number: int) -> Any:
        while number not in self._answers:
            row = json.loads(self._child.hear())
            self._answers[row["id"]] = row
        row = self._answers.pop(number)
        if "error" in row:
            raise ClientFailed(row["error"])
        return row["value"]

    def ask(self, do: str, **arguments: object) -> Any:
        return self.answer(self.submit(do, **arguments))

    def read(self, topic: str, broker: str, queues: int) -> Mapping[int, list[str]]:
        found = self.ask("read", topic=topic, broker=broker, queues=queues)
        return {int(number): bodies for number, bodies in found.items()}

    def close(self) -> None:
        self._child.close()


class JavaClient:
    """RocketMQ's Java client; its machine stays up from one trial to the next."""

    def __init__(
        self, network: Network, command: Sequence[str], namesrv: str, folder: Path
    ) -> None:
        self._child = Child(network, [*command, "serve"], folder / "java.stderr")
        self._namesrv = namesrv

    def submit(self, **arguments: object) -> None:
        given = {"namesrv": self._namesrv, **arguments}
        self._child.say(f"write {json.dumps(given)}")

    def answer(self) -> None:
        while (row := json.loads(self._child.hear()))["event"] != "end":
            if row["event"] == "error":
                raise ClientFailed(f"the Java writer: {row['error']}")
        if row["status"] != 0:
            raise ClientFailed("the Java writer failed")

    def close(self) -> None:
        self._child.close()


@dataclass(frozen=True)
class Writing:
    """Writers under way: where they log, and the file that ends them."""

    logs: tuple[Path, ...]
    stop: Path
    request: int

    def sends(self) -> list[Send]:
        """All sends that have ended so far."""
        lines = (line for log in self.logs if log.exists() for line in whole_lines(log.read_text()))
        return [parse_send(line) for line in lines]


def whole_lines(text: str) -> list[str]:
    """The last line may be half written."""
    return text[: text.rfind("\n") + 1].splitlines()


class Clients:
    """All writers and the reader of a cluster."""

    def __init__(
        self, network: Network, namesrv: str, folder: Path, java: Sequence[str] | None
    ) -> None:
        self._folder = folder
        self.ours = OurClient(network, namesrv, folder)
        self._java = JavaClient(network, java, namesrv, folder) if java is not None else None

    def write(self, topic: str, broker: str, queues: int) -> Writing:
        """Start to write to all queues: the Java writer, if there is one, has the upper half."""
        stop = self._folder / f"{topic}.stop"
        ours = range(queues if self._java is None else queues // 2)
        theirs = range(len(ours), queues)
        logs = tuple(self._folder / f"{topic}.{writer}" for writer in ("python", "java"))
        asked = self.ours.submit(
            "write", writer="python", topic=topic, broker=broker, queues=list(ours),
            log=str(logs[0]), stop=str(stop),
        )  # fmt: skip
        if self._java is not None:
            self._java.submit(
                writer="java", topic=topic, broker=broker, queues=[str(queue) for queue in theirs],
                log=str(logs[1]), stop=str(stop),
            )  # fmt: skip
        return Writing(logs, stop, asked)

    def finish(self, writing: Writing) -> list[Send]:
        """End the writers and return all that they did."""
        writing.stop.touch()
        self.ours.answer(writing.request)
        if self._java is not None:
            self._java.answer()
        return writing.sends()

    def close(self) -> None:
        self.ours.close()
        if self._java is not None:
            self._java.close()
