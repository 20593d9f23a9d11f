"""RocketMQ's frames over a plain socket: enough to ask a server one thing at a time.

Written against the protocol and not against our own code on purpose: what it records and replays
must not depend on what is being tested.
"""

import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

CONNECT_SECONDS_MAX = 5
FRAME_BYTES_MAX = 16 * 1024 * 1024
# The ordinal of V4_9_8: what a client of that release sends.
VERSION = 409
RESPONSE, ONEWAY = 1, 2


@dataclass
class Frame:
    """One command, request or response."""

    code: int
    ext: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    flag: int = 0
    opaque: int = 0
    remark: str | None = None
    language: str = "JAVA"
    version: int = VERSION

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE)

    def encode(self) -> bytes:
        """The bytes of a frame with a JSON header."""
        header: dict[str, Any] = {
            "code": self.code,
            "flag": self.flag,
            "language": self.language,
            "opaque": self.opaque,
            "serializeTypeCurrentRPC": "JSON",
            "version": self.version,
        }
        if self.ext:
            header["extFields"] = self.ext
        if self.remark is not None:
            header["remark"] = self.remark
        text = json.dumps(header, separators=(",", ":")).encode()
        return struct.pack(">II", 4 + len(text) + len(self.body), len(text)) + text + self.body


class Connection:
    """One client's connection; requests that the server sends are kept aside."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), CONNECT_SECONDS_MAX)
        self._opaque = 0
        self.pushed: list[Frame] = []

    @property
    def local_address(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"{host}:{port}"

    def send(
        self, code: int, ext: Mapping[str, str] | None = None, body: bytes = b"", flag: int = 0
    ) -> int:
        """Send a request without waiting; its opaque is the handle to its answer."""
        self._opaque += 1
        frame = Frame(code, dict(ext or {}), body, flag=flag, opaque=self._opaque)
        self._socket.sendall(frame.encode())
        return self._opaque

    def ask_with_header(self, header: str, timeout: float = 20) -> Frame:
        """Send a header as it is written, with `$opaque` filled in, and wait for the answer."""
        self._opaque += 1
        text = header.replace("$opaque", str(self._opaque)).encode()
        self._socket.sendall(struct.pack(">II", 4 + len(text), len(text)) + text)
        return self.answer_to(self._opaque, timeout)

    def answer_to(self, opaque: int, timeout: float = 20) -> Frame:
        """The answer to one request; pushed requests that come first are kept."""
        end = time.monotonic() + timeout
        while True:
            frame = self.receive(end - time.monotonic())
            if frame.is_response and frame.opaque == opaque:
                return frame
            if not frame.is_response:
                self.pushed.append(frame)

    def ask(
        self,
        code: int,
        ext: Mapping[str, str] | None = None,
        body: bytes = b"",
        timeout: float = 20,
    ) -> Frame:
        """Send a request and wait for its answer."""
        return self.answer_to(self.send(code, ext, body), timeout)

    def reply(self, frame: Frame, code: int) -> None:
        """Answer a request that the server sent to us."""
        self._socket.sendall(Frame(code, flag=RESPONSE, opaque=frame.opaque).encode())

    def wait_for_push(self, code: int, timeout: float = 20) -> Frame:
        """The next request of this code that the server sends to us."""
        end = time.monotonic() + timeout
        while True:
            for frame in self.pushed:
                if frame.code == code:
                    self.pushed.remove(frame)
                    return frame
            frame = self.receive(end - time.monotonic())
            if not frame.is_response:
                self.pushed.append(frame)

    def receive(self, timeout: float) -> Frame:
        """The next frame, whatever it is."""
        if timeout <= 0:
            raise TimeoutError("the server did not answer in time")
        self._socket.settimeout(timeout)
        (length,) = struct.unpack(">I", self._exactly(4))
        assert length <= FRAME_BYTES_MAX
        rest = self._exactly(length)
        (mark,) = struct.unpack_from(">I", rest)
        kind, size = mark >> 24, mark & 0xFFFFFF
        assert kind == 0, "asked with a JSON header, answered with another"
        header = json.loads(rest[4 : 4 + size])
        return Frame(
            code=header["code"],
            ext=header.get("extFields") or {},
            body=rest[4 + size :],
            flag=header["flag"],
            opaque=header["opaque"],
            remark=header.get("remark"),
            language=header.get("language", ""),
            version=header.get("version", 0),
        )

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return bytes(data)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
