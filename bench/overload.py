"""Offers a broker several times what it can take, over many connections, and says what it does.

python -m bench.overload HOST:PORT --connections 16 --rounds 3 --seconds 5 --times 5

In each round first every connection keeps a window of sends under way: the peak. Then sends are
offered at a multiple of that peak, whatever the answers do (an open loop): what a socket does not
take is dropped by the sender and counted as held back. A polite client sends one message every
10 ms meanwhile. Times count from the moment in which the system took the first byte of a block of
sends. The last line is a JSON object.
"""

import argparse
import json
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from bench.load import make_block
from gantrymq.base.network import split_address
from gantrymq.kernel import cut_commands
from gantrymq.protocol.command import JSON_CODEC

BLOCK_FRAMES, BLOCKS = 8, 1024
SIZE, QUEUES = 1024, 8
WINDOW_BLOCKS = 16
SEND_BUFFER_BYTES = 65_535
"""As RocketMQ's clients of 4.9 have it. With Linux's 4 MiB a send waits longer in its own machine
than in the broker."""
TICK_SECONDS = 0.005
POLITE_SECONDS = 0.01
CALM_SECONDS = 0.05
"""A polite send that is answered so fast says that the overload is over."""
SILENT_SECONDS_MAX = 30.0
READ_BYTES = 1 << 18


class Outcome:
    """What became of the sends of one phase."""

    def __init__(self, connections: int) -> None:
        self.offered = self.held_back = self.written = 0
        self.stored = [0] * connections
        self.refused = [0] * connections
        self.stored_seconds: list[float] = []
        self.refused_seconds: list[float] = []


class Link:
    """One connection: blocks that are being written, and the times of those under way."""

    def __init__(self, address: str, number: int) -> None:
        self.number = number
        self.socket = socket.create_connection(split_address(address))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self.socket.setblocking(False)
        self.times: list[deque[list[float]]] = [deque() for _ in range(BLOCKS)]
        self.under_way = 0
        """Frames that were written and not answered."""
        self.is_full = False
        """Whether the socket took nothing when it was last asked."""
        self._next = number * 37 % BLOCKS
        self._rest = memoryview(b"")
        self._buffer = bytearray()

    def write(self, blocks: list[bytes], frames: int = BLOCK_FRAMES) -> bool:
        """Write the rest of a block, then a new one; False if the socket is full."""
        if not self._flush():
            return False
        index = self._next
        try:
            sent = self.socket.send(blocks[index])
        except BlockingIOError:
            return False
        self._rest = memoryview(blocks[index])[sent:]
        self._next = (index + 1) % BLOCKS
        self.times[index].append([time.perf_counter(), frames])
        self.under_way += frames
        return True

    def write_alone(self, block: bytes) -> bool:
        """A block with one frame, which has the number of the very first one."""
        self._next = 0
        return self.write([block], 1)

    def _flush(self) -> bool:
        while self._rest:
            try:
                self._rest = self._rest[self.socket.send(self._rest) :]
            except BlockingIOError:
                return False
        return True

    def finish_block(self) -> bool:
        """Write the rest of a block; an answer may wait for it."""
        return self._flush()

    def take_answers(self, outcome: Outcome) -> None:
        """Read what has come."""
        chunk = self.socket.recv(READ_BYTES)
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        self._buffer += chunk
        commands, used, error = cut_commands(self._buffer, 1 << 24, 1 << 20)
        if error is not None:
            raise error
        del self._buffer[:used]
        now = time.perf_counter()
        for command in commands:
            times = self.times[command.opaque // BLOCK_FRAMES]
            entry = times[0]
            entry[1] -= 1
            if not entry[1]:
                times.popleft()
            stored = command.code == 0
            (outcome.stored if stored else outcome.refused)[self.number] += 1
            seconds = outcome.stored_seconds if stored else outcome.refused_seconds
            seconds.append(now - entry[0])
        self.under_way -= len(commands)


class Driver:
    """All connections of the load, and the polite one."""

    def __init__(self, address: str, connections: int) -> None:
        self._blocks = [
            make_block(number, JSON_CODEC, SIZE, QUEUES, BLOCK_FRAMES) for number in range(BLOCKS)
        ]
        self._single = make_block(0, JSON_CODEC, SIZE, QUEUES, 1)
        self._links = [Link(address, number) for number in range(connections)]
        self._polite = Link(address, 0)
        self._polite_due = 0.0
        self.polite = Outcome(1)
        self._ready = selectors.EpollSelector()
        for link in self._links:
            self._ready.register(link.socket, selectors.EVENT_READ, link)
        self._ready.register(self._polite.socket, selectors.EVENT_READ, self._polite)

    def _write(self, link: Link) -> bool:
        """A block, unless the socket is full. A full one is not asked again before it has room:
        asking in vain would take the time in which answers are read."""
        if link.is_full or link.write(self._blocks):
            return not link.is_full
        link.is_full = True
        self._ready.modify(link.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, link)
        return False

    def _read(self, outcome: Outcome, timeout: float) -> list[Link]:
        """Read answers; the links that had some, or have room again."""
        found = []
        for key, events in self._ready.select(timeout):
            link: Link = key.data
            if events & selectors.EVENT_WRITE:
                link.is_full = False
                self._ready.modify(link.socket, selectors.EVENT_READ, link)
            if events & selectors.EVENT_READ:
                link.take_answers(self.polite if link is self._polite else outcome)
            found.append(link)
        return found

    def _be_polite(self, now: float) -> None:
        if now >= self._polite_due and not self._polite.under_way:
            self._polite_due = now + POLITE_SECONDS
            self._polite.write_alone(self._single)

    def peak(self, seconds: float) -> Outcome:
        """A window of sends under way on each connection."""
        outcome = Outcome(len(self._links))
        ends = time.perf_counter() + seconds
        waiting = self._links
        while (now := time.perf_counter()) < ends:
            self._be_polite(now)
            for link in waiting:
                while link is not self._polite and link.under_way < WINDOW_BLOCKS * BLOCK_FRAMES:
                    if not self._write(link):
                        break
            waiting = self._read(outcome, POLITE_SECONDS)
        return outcome

    def flood(self, rate: float, seconds: float, outcome: Outcome) -> None:
        """Sends at a rate, in equal parts over all connections."""
        began = time.perf_counter()
        offered = 0
        while (now := time.perf_counter()) - began < seconds:
            due = int((now - began) * rate / BLOCK_FRAMES / len(self._links))
            for link in self._links:
                for missing in range(due - offered, 0, -1):
                    if not self._write(link):
                        outcome.held_back += missing * BLOCK_FRAMES
                        break
                    outcome.written += BLOCK_FRAMES
            outcome.offered += (due - offered) * BLOCK_FRAMES * len(self._links)
            offered = due
            self._be_polite(now)
            self._read(outcome, TICK_SECONDS)

    def settle(self, outcome: Outcome, *, until_calm: bool) -> float:
        """Wait for all answers, and for a polite send that is quick; the seconds it took."""
        began = time.perf_counter()
        calm = not until_calm
        while not calm or any(link.under_way for link in self._links):
            now = time.perf_counter()
            if now - began > SILENT_SECONDS_MAX:
                raise TimeoutError("sends were never answered")
            for link in self._links:
                link.finish_block()
            self._be_polite(now)
            before = len(self.polite.stored_seconds)
            self._read(outcome, TICK_SECONDS)
            calm = calm or any(s < CALM_SECONDS for s in self.polite.stored_seconds[before:])
        return time.perf_counter() - began


def percentile(seconds: Iterable[float], part: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def run(
    address: str,
    connections: int,
    rounds: int,
    peak_seconds: float,
    seconds: float,
    times: float,
) -> dict[str, Any]:
    """Peak and flood in turns: a machine has other work, too."""
    driver = Driver(address, connections)
    driver.settle(driver.peak(0.5), until_calm=False)
    peak = flood = 0.0
    floods, recoveries, polite = Outcome(connections), [], Outcome(1)
    for _ in range(rounds):
        window = driver.peak(peak_seconds)
        tps = sum(window.stored) / peak_seconds
        driver.settle(Outcome(connections), until_calm=False)
        driver.polite = Outcome(1)
        before = sum(floods.stored)
        driver.flood(tps * times, seconds, floods)
        peak, flood = peak + tps, flood + (sum(floods.stored) - before) / seconds
        polite.stored_seconds += driver.polite.stored_seconds
        polite.refused_seconds += driver.polite.refused_seconds
        driver.polite = Outcome(1)
        recoveries.append(driver.settle(Outcome(connections), until_calm=True))
    total = rounds * seconds
    return {
        "peak": peak / rounds,
        "offered": floods.offered / total,
        "held_back": floods.held_back / total,
        "goodput": flood / rounds,
        "refused": sum(floods.refused) / total,
        "ratio": flood / peak,
        "accepted_p50_s": percentile(floods.stored_seconds, 0.5),
        "accepted_p99_s": percentile(floods.stored_seconds, 0.99),
        "accepted_max_s": percentile(floods.stored_seconds, 1.0),
        "refused_p99_s": percentile(floods.refused_seconds, 0.99),
        "least_share": min(floods.stored) * connections / max(1, sum(floods.stored)),
        "polite_p99_s": percentile(polite.stored_seconds, 0.99),
        "polite_stored": len(polite.stored_seconds),
        "polite_refused": len(polite.refused_seconds),
        "recovery_s": max(recoveries),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak-seconds", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--times", type=float, default=5.0)
    given = parser.parse_args()
    figures = run(
        given.address,
        given.connections,
        given.rounds,
        given.peak_seconds,
        given.seconds,
        given.times,
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
