"""Plays a dialogue: sends the requests of its steps in order and hands back the answers."""

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from string import Template
from types import TracebackType
from typing import Any, Self

import lenient
import normal
import records
from wire import ONEWAY, Connection, Frame

Step = dict[str, Any]
UNTIL_SECONDS_MAX = 20
AGAIN_SECONDS = 0.05
# A server that has not answered by then never will.
SILENCE_SECONDS = 8
CLUSTER_INFO = 106
# What a release answers that does not know the request: waiting will not teach it.
NOT_SUPPORTED = 3


class Player:
    """Holds the connections and the words of one run."""

    def __init__(self, namesrv: str, broker: str) -> None:
        self._addresses = {"namesrv": namesrv, "broker": broker}
        self._connections: dict[tuple[str, str], Connection] = {}
        self._held: dict[str, tuple[Connection, int]] = {}
        cluster, broker_name = _names_of(namesrv, broker)
        self._words: dict[str, str] = {
            "namesrv": namesrv,
            "broker": broker,
            "brokerName": broker_name,
            "cluster": cluster,
            "now": str(int(time.time() * 1000)),
        }
        # What is replaced in answers, longest first.
        self._placeholders = {
            namesrv: "<namesrv>",
            broker: "<broker>",
            cluster: "<cluster>",
            broker_name: "<brokerName>",
        }

    def play(self, step: Step) -> dict[str, Any] | None:
        """The normalised answer of one step; None for a request that gets none now."""
        connection = self._connection(step)
        if "pushed" in step:
            frame = connection.wait_for_push(step["pushed"])
            if "replyCode" in step:
                connection.reply(frame, step["replyCode"])
            return {"flag": frame.flag} | normal.answer(frame, self._placeholders, step)
        if "finishes" in step:
            held, opaque = self._held.pop(step["finishes"])
            return self._finish(step, held.answer_to(opaque))
        if "header" in step["request"]:
            return self._ask_with_header(connection, step)
        ext, body = self._request(step["request"])
        code = step["request"]["code"]
        if step.get("oneway"):
            connection.send(code, ext, body, flag=ONEWAY)
            return None
        if step.get("hold"):
            self._held[step["name"]] = connection, connection.send(code, ext, body)
            return None
        try:
            frame = connection.ask(code, ext, body, SILENCE_SECONDS)
        except TimeoutError:
            return {"silent": True}
        end = time.monotonic() + UNTIL_SECONDS_MAX
        while not _reached(step.get("until", {}), frame) and time.monotonic() < end:
            if frame.code == NOT_SUPPORTED:
                break
            time.sleep(AGAIN_SECONDS)
            frame = connection.ask(code, ext, body)
        return self._finish(step, frame)

    def _ask_with_header(self, connection: Connection, step: Step) -> dict[str, Any]:
        """A header that is written out; a server that cannot read it may hang up."""
        text = step["request"]["header"]
        try:
            return self._finish(step, connection.ask_with_header(text, SILENCE_SECONDS))
        except TimeoutError:
            return {"silent": True}
        except ConnectionError:
            return {"closed": True}

    def _finish(self, step: Step, frame: Frame) -> dict[str, Any]:
        for name, path in step.get("keep", {}).items():
            self._words[name] = _found(frame, path)
        return normal.answer(frame, self._placeholders, step)

    def _connection(self, step: Step) -> Connection:
        key = step["target"], step.get("connection", "main")
        if key not in self._connections:
            self._connections[key] = Connection(self._addresses[step["target"]])
        return self._connections[key]

    def _request(self, request: Mapping[str, Any]) -> tuple[dict[str, str], bytes]:
        body = self._body(request)
        self._words["crc"] = str(zlib.crc32(body) & 0x7FFFFFFF)
        ext = {name: self._filled(value) for name, value in request.get("ext", {}).items()}
        return ext, body

    def _body(self, request: Mapping[str, Any]) -> bytes:
        if "bodyJson" in request:
            text = json.dumps(request["bodyJson"], separators=(",", ":"), ensure_ascii=False)
            return self._filled(text).encode()
        if "bodyHex" in request:
            return bytes.fromhex(request["bodyHex"])
        if "bodyBytes" in request:
            return b"." * int(request["bodyBytes"])
        return self._filled(request.get("body", "")).encode()

    def _filled(self, text: str) -> str:
        return Template(text).substitute(self._words)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in self._connections.values():
            connection.close()


def play_all(steps: Sequence[Step], namesrv: str, broker: str) -> list[dict[str, Any] | None]:
    """Every answer of one dialogue, played against these servers."""
    answers = []
    with Player(namesrv, broker) as player:
        for step in steps:
            try:
                answers.append(player.play(step))
            except (TimeoutError, ConnectionError) as silence:
                silence.add_note(f"at the step {step['name']!r}")
                raise
    return answers


def _names_of(namesrv: str, broker: str) -> tuple[str, str]:
    """What the cluster and the broker at this address are called."""
    with Connection(namesrv) as connection:
        info = lenient.loads(connection.ask(CLUSTER_INFO).body.decode())
    for name, data in info["brokerAddrTable"].items():
        if broker in data["brokerAddrs"].values():
            return data["cluster"], name
    raise LookupError(f"no broker at {broker}")


def _reached(wanted: Mapping[str, Any], frame: Frame) -> bool:
    seen = {"code": frame.code} | {f"ext.{name}": value for name, value in frame.ext.items()}
    return all(seen.get(name) == value for name, value in wanted.items())


def _found(frame: Frame, path: str) -> str:
    kind, _, name = path.partition(".")
    if kind == "ext":
        return frame.ext.get(name, "0")  # a release may not know the field
    if kind == "physical":  # the last eight bytes of an offsetMsgId
        return str(int(frame.ext[name].split(",")[0][-16:], 16))
    if kind == "message":
        return str(records.decode(frame.body)[0][name])
    raise ValueError(path)
