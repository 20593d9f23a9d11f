"""One connection, the same class on both ends, because the protocol is symmetric.

Each received chunk is cut into commands at once. A response wakes its caller. A request goes to
`answer`, a plain function: it replies at once, parks the request for later, or starts a task.
Plain sends to a broker stay together, as runs. All replies of one turn of the event loop leave in
one write.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, cast

from gantrymq.base.errors import ProtocolError
from gantrymq.base.tls.network import TLS_FIRST_BYTE
from gantrymq.kernel import Request, SendRun, cut_requests
from gantrymq.protocol.command import (
    FRAME_BYTES_MAX,
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    Command,
    encode,
)
from gantrymq.protocol.ids import encode_host
from gantrymq.remoting.frame_limits import OversizedFrame, frames_within, oversized_front
from gantrymq.remoting.pending_call import CallTimeout, ConnectionLost, FutureCall, PendingCall
from gantrymq.remoting.requests import PlainSends, RequestGate, commands_of, note_slow_turn

log = logging.getLogger(__name__)

FRAMES_PER_TURN_MAX: Final = 256
"""About 3 ms of ordinary sends, so that one busy peer cannot hold the loop."""
WRITE_BUFFER_BYTES_MAX: Final = 4 * 1024 * 1024
"""Above it the peer is slow: nothing more is read from it until it has caught up."""
JOINED_BYTES_MAX: Final = 16 * 1024
"""What is written in a turn goes out as one piece, unless copying would cost more than a write."""
TURN_SECONDS_MAX: Final = 0.02
LOOK_EVERY: Final = 16
"""Requests between two looks at the clock and at the answers that wait for the peer."""
TURN_SECONDS_LOUD: Final = 0.05
"""Requests that hold the loop longer than this are named in the log."""
CLEAR_FIRST_BYTES: Final = (0x00, 0x01)

Answer = Callable[["Connection", Command], None]


def refuse_requests(connection: "Connection", command: Command) -> None:
    """The default of clients: answer every request with code 3 (not supported)."""
    connection.reply(command, 3, remark=f" request type {command.code} not supported")


class Connection(asyncio.Protocol):
    """A connection to a peer, with its pending calls and unanswered requests."""

    # With more than 30 attributes an instance without slots is slower, at each message.
    __slots__ = (
        "_answer", "_answered", "_awaits_drain", "_buffer", "_calls", "_frame_bytes_max", "_gate",
        "_later", "_on_lost", "_on_made", "_opaques", "_out", "_reading", "_sends", "_sign",
        "_sniffed", "_sweep", "_sweep_at", "_turn_pending", "_unsent", "_when_drained", "access",
        "counted", "frame_since", "is_admitted", "last_active", "loop", "made_at", "open", "peer",
        "peer_host", "pending", "polls_held", "slow_reader", "slow_since", "transport",
    )  # fmt: skip

    def __init__(
        self,
        answer: Answer = refuse_requests,
        *,
        on_made: Callable[["Connection"], None] | None = None,
        on_lost: Callable[["Connection"], None] | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        sign: Callable[[Command], None] | None = None,
        gate: RequestGate | None = None,
        sends: PlainSends | None = None,
    ) -> None:
        """`sign` adds a signature to each request of this end; `gate` has a server's limits."""
        self._answer, self._on_made, self._on_lost = answer, on_made, on_lost
        self._frame_bytes_max, self._sign, self._gate = frame_bytes_max, sign, gate
        self._sends = sends
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._unsent = 0
        """Bytes of large answers in `_out`."""
        self._later: Sequence[Command] = ()
        """Requests of this turn that are served in the next one, maybe once the peer reads on."""
        self._awaits_drain = False
        self._when_drained: list[Callable[[], None]] = []
        self._opaques = count(1)
        self._calls: dict[int, PendingCall] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = float("inf")
        self._turn_pending = False
        self._sniffed = False
        self._reading = True
        self.transport: asyncio.Transport
        self.loop: asyncio.AbstractEventLoop
        self.open = False
        self.slow_reader = False
        self.slow_since = 0.0
        """When the peer began to be a slow reader; in the loop's time, as those below."""
        self.frame_since = 0.0
        """When the first byte of a frame came whose last one is missing; 0 without such a frame."""
        self.made_at = 0.0
        self.is_admitted = False
        """Whether the server's guard has let one request pass."""
        self.peer = ("", 0)
        self.peer_host = b"\x7f\x00\x00\x01\x00\x00\x00\x00"
        self.last_active = 0.0
        self.pending = 0
        """Requests accepted from the peer and not answered yet."""
        self.counted = 0
        """What of it the gate has counted."""
        self.polls_held = 0
        """Pulls and pops of this peer that wait for messages."""
        self.access: object = None
        """What the server's guard decided for this connection."""
        self._answered: asyncio.Future[None] | None = None

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's transports are no subclasses of asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        self.loop = asyncio.get_running_loop()
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and len(peer) >= 2:
            self.peer = (str(peer[0]), int(peer[1]))
            self.peer_host = encode_host(*self.peer)
        self.last_active = self.made_at = self.loop.time()
        self.open = True
        if self._on_made is not None:
            self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)
        if self._sweep is not None:
            self._sweep.cancel()
        self._later = ()
        self._when_drained.clear()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.settle(ConnectionLost(f"{self.address} closed the connection"))
        if self._on_lost is not None:
            self._on_lost(self)

    def pause_writing(self) -> None:
        self.slow_reader = True
        self.slow_since = self.loop.time()
        self._set_reading(False)
        if self._gate is not None:
            self._gate.fell_behind(self)

    def resume_writing(self) -> None:
        self.slow_reader = False
        if self._gate is not None:
            self._gate.caught_up(self)
        if self._awaits_drain:
            self._awaits_drain = False
            self.loop.call_soon(self._next_turn)
        elif not self._turn_pending:
            self._set_reading(True)
        self._tell_drained()

    def data_received(self, data: bytes) -> None:
        self.last_active = now = self.loop.time()
        if not self._sniffed and not self._sniff(data[0]):
            return
        if self._turn_pending or self._buffer:
            self._buffer += data
            data = b""
        if not self._turn_pending:
            self._take_turn(now, data)

    # requests and responses coming in

    def _sniff(self, first: int) -> bool:
        """Refuse a peer whose first byte begins no plain frame, such as a TLS handshake."""
        self._sniffed = True
        if first in CLEAR_FIRST_BYTES:
            return True
        why = "TLS is not configured" if first == TLS_FIRST_BYTE else f"first byte 0x{first:02x}"
        log.warning("%s refused: %s", self.address, why)
        self.abort()
        return False

    def _take_turn(self, began: float, data: bytes = b"", *, is_called: bool = False) -> None:
        """Serve what was received: `data`, or what is in the buffer."""
        self._turn_pending = False
        gate, size_max = self._gate, self._frame_bytes_max
        if gate is not None:
            if not is_called and gate.must_wait(self):
                self._buffer += data
                self._turn_pending = True
                self._set_reading(False)  # so that TCP holds the peer back
                return
            size_max = gate.limits.max_frame_bytes
        rules, access = (None, None) if self._sends is None else self._sends.rules_for(self)
        received = data or self._buffer
        requests, count, used, error = cut_requests(
            received, size_max, FRAMES_PER_TURN_MAX, rules, self.peer_host, access
        )
        served: Sequence[Request] = requests
        if gate is not None:
            if used > gate.limits.max_header_bytes:
                commands = commands_of(requests)
                error, used = frames_within(received, used, commands, gate.limits, error)
                served, count = commands, len(commands)
            served = gate.admitted(self, served, count)
        if not data:
            del self._buffer[:used]
        elif used < len(data):
            self._buffer += memoryview(data)[used:]
        self._serve(served, began + TURN_SECONDS_MAX)
        if gate is not None and self._buffer and not isinstance(error, OversizedFrame):
            error = oversized_front(self._buffer, gate.limits) or error
        if error is not None:
            self._refuse_bytes(error)
        now = self.loop.time()
        if now - began > TURN_SECONDS_LOUD:
            note_slow_turn(now - began, requests, self.address)
        if error is not None or self._turn_pending:
            return
        if count == FRAMES_PER_TURN_MAX and self._buffer:
            self._turn_pending = True
            self._set_reading(False)
            self.loop.call_soon(self._next_turn)
        elif not self._buffer:
            self.frame_since = 0.0
        elif used or not self.frame_since:
            self.frame_since = began

    def _serve(self, requests: Sequence[Request], ends: float) -> None:
        """Answer requests, for a while and as long as the peer takes the answers."""
        for at in range(0, len(requests), LOOK_EVERY):
            for request in requests[at : at + LOOK_EVERY]:
                if isinstance(request, SendRun):
                    self._serve_run(request)
                elif request.flag & RESPONSE_FLAG:
                    self._settle(request)
                else:
                    if not request.flag & ONEWAY_FLAG:
                        self.pending += 1
                    self._answer(self, request)
            if self._unsent > WRITE_BUFFER_BYTES_MAX:
                self._flush()
            rest = requests[at + LOOK_EVERY :]
            if rest and (self.slow_reader or self.loop.time() > ends):
                self._leave_for_later(rest)
                return

    def _serve_run(self, run: SendRun) -> None:
        self.pending += run.asked
        if self._sends is None or not self._sends.take(self, run):
            for command in run.commands():
                self._answer(self, command)

    def _leave_for_later(self, requests: Sequence[Request]) -> None:
        """Serve the rest in the next turn, after others, and once the peer has caught up.

        Each by itself: until then what is plain may have changed.
        """
        self._later = commands_of(requests)
        self._turn_pending = True
        self._set_reading(False)
        self.loop.call_soon(self._next_turn)

    def go_on(self) -> None:
        """Read on: the server has room for the requests of this connection."""
        self._next_turn(is_called=True)

    def _next_turn(self, *, is_called: bool = False) -> None:
        if not self.open:
            return
        if self.slow_reader:
            self._awaits_drain = True
            return
        if self._later:
            self._turn_pending = False
            later, self._later = self._later, ()
            self._serve(later, self.loop.time() + TURN_SECONDS_MAX)
            if self._turn_pending:
                return
        self._set_reading(not self.slow_reader)
        self._take_turn(self.loop.time(), is_called=is_called)

    def _refuse_bytes(self, error: ProtocolError) -> None:
        """Close after a bad frame: nothing after it can be trusted. Earlier replies still leave."""
        if isinstance(error, OversizedFrame) and self._gate is not None:
            self._gate.refusals.count(error.key, self.address)
            if error.command is not None:
                self.pending += 1
                self.reply(error.command, error.code, remark=str(error))
        else:
            log.warning("%s sent bytes that are no frame, closed: %s", self.address, error)
        later, self._later = self._later, ()
        for command in later:
            self.pending += 1
            self._answer(self, command)
        self._buffer.clear()
        self._flush()
        self.close()

    def _settle(self, command: Command) -> None:
        call = self._calls.pop(command.opaque, None)
        if call is not None:
            call.settle(command)

    # answering

    def reply(
        self,
        request: Command,
        code: int = 0,
        *,
        ext: dict[str, str] | None = None,
        remark: str | None = None,
        body: bytes = b"",
    ) -> None:
        """Answer a request, unless it was one-way."""
        if request.flag & ONEWAY_FLAG:
            return
        self._one_answered()
        answer = Command(
            code=code,
            ext=ext or {},
            flag=RESPONSE_FLAG,
            opaque=request.opaque,
            remark=remark,
            body=body,
            codec=request.codec,
        )
        self.write(encode(answer))

    def reply_frame(self, *parts: bytes) -> None:
        """Reply with a frame that is already built (the hot path). Not for one-way requests."""
        self._one_answered()
        if self.open:
            if not self._out:
                self.loop.call_soon(self._flush)
            self._out += parts

    def reply_frames(self, frames: bytes, count: int) -> None:
        """Reply to `count` requests at once, with frames that are already built and joined."""
        self.pending -= count - 1
        self._one_answered()
        if self._out:
            self._out.append(frames)
        elif self.open:
            self.last_active = self.loop.time()
            self.transport.write(frames)

    def reply_with_body(self, head: bytes, body: bytes) -> None:
        """The same for a frame whose body may be large."""
        self._unsent += len(body)
        self.reply_frame(head, body)

    def _one_answered(self) -> None:
        self.pending -= 1
        if not self.pending and self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    async def all_answered(self) -> None:
        """Wait until every request accepted so far has its answer, or the peer is gone."""
        if self.pending and self.open:
            self._answered = self.loop.create_future()
            await self._answered

    def write(self, data: bytes) -> None:
        """Append bytes to the output of this turn."""
        if self.open:
            if not self._out:
                self.loop.call_soon(self._flush)
            self._out.append(data)
            if len(data) > JOINED_BYTES_MAX:
                self._unsent += len(data)

    @property
    def is_crowded(self) -> bool:
        """Whether so many answers wait for the peer that no large one should be added."""
        return self.slow_reader or self._unsent > WRITE_BUFFER_BYTES_MAX

    def when_drained(self, go_on: Callable[[], None]) -> None:
        """Call once the peer has taken the answers that wait; never if it closes."""
        self._when_drained.append(go_on)

    def _tell_drained(self) -> None:
        waiting, self._when_drained = self._when_drained, []
        for go_on in waiting:
            self.loop.call_soon(go_on)

    def _flush(self) -> None:
        out, self._out = self._out, []
        self._unsent = 0
        if out and self.open:
            self.last_active = self.loop.time()
            if len(out) == 1:
                self.transport.write(out[0])
            elif len(max(out, key=len)) > JOINED_BYTES_MAX:
                self.transport.writelines(out)
            else:
                self.transport.write(b"".join(out))
        if self._when_drained and not self.slow_reader:
            self._tell_drained()

    # calling the peer

    def submit(self, command: Command, timeout: float) -> asyncio.Future[Command]:
        """Send a request; the future is its response, CallTimeout or ConnectionLost."""
        future: asyncio.Future[Command] = self.loop.create_future()
        if not self.open:
            future.set_exception(ConnectionLost(f"{self.address} is not connected"))
            return future
        if self._sign is not None:
            self._sign(command)
        command.opaque = self.expect(FutureCall(future, self.loop.time() + timeout))
        self.write(encode(command))
        return future

    def expect(self, call: PendingCall) -> int:
        """Register a call whose frame the caller writes itself (the hot path); returns its number.

        Only while the connection is open. `call` gets the outcome.
        """
        opaque = next(self._opaques) & 0x7FFF_FFFF
        self._calls[opaque] = call
        if call.deadline < self._sweep_at:
            self._schedule_sweep(call.deadline)
        return opaque

    async def call(self, command: Command, timeout: float) -> Command:
        """Send a request and wait for its response."""
        return await self.submit(command, timeout)

    def next_number(self) -> int:
        """The number for a one-way request whose frame the caller builds and writes itself."""
        return next(self._opaques) & 0x7FFF_FFFF

    def oneway(self, command: Command) -> None:
        """Send a one-way request; it is silently lost if the connection is closed."""
        if self._sign is not None:
            self._sign(command)
        command.flag |= ONEWAY_FLAG
        command.opaque = self.next_number()
        self.write(encode(command))

    def _schedule_sweep(self, at: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = at
        self._sweep = self.loop.call_at(at, self._sweep_calls)

    def _sweep_calls(self) -> None:
        """Fail the overdue calls and set the timer for the next; one timer serves all calls."""
        now = self.loop.time()
        self._sweep, self._sweep_at = None, float("inf")
        overdue = [opaque for opaque, call in self._calls.items() if call.deadline <= now]
        for opaque in overdue:
            self._calls.pop(opaque).settle(CallTimeout(f"{self.address} did not answer in time"))
        if self._calls:
            self._schedule_sweep(min(call.deadline for call in self._calls.values()))

    # life

    @property
    def address(self) -> str:
        return f"{self.peer[0]}:{self.peer[1]}"

    def _set_reading(self, wanted: bool) -> None:
        if wanted == self._reading or not self.open:
            return
        self._reading = wanted
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def answer_with(self, answer: Answer) -> None:
        """Answer all further requests in another way."""
        self._answer, self._sends = answer, None

    def stop_reading(self) -> None:
        """Read no further requests; replies still leave."""
        self._set_reading(False)

    def close(self) -> None:
        """Close once everything written has left."""
        if self.open:
            self._flush()
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self.open:
            self.transport.abort()
