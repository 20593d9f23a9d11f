"""Every interleaving of a small raft group, breadth first, and raft's promises in each state.

    python tests/raft/explore.py --seconds 180

Three members, records of one byte that are sent one by one. In each state any message under way may
arrive, or never (a message that stays under way for ever is a lost one), or arrive twice; any
member may time out, crash (with the loss of what it did not sync, also right before a sync ends)
or, as leader, write a record. Bounds on terms, records, crashes and so on keep the states finite.

A member is a value here: what one does with an event is computed once and remembered, and a state
of the group is a few numbers.
"""

import argparse
import copy
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from gantrymq.replication.raft import LogConflict, LogView, RaftConfig, RaftCore, StoredState
from gantrymq.replication.raft.messages import RaftMessage

NAMES = ("1", "2", "3")


class Broken(Exception):
    """A promise of raft does not hold."""


@dataclass(frozen=True)
class Bounds:
    """How far the group may go."""

    terms: int = 3
    records: int = 3
    crashes: int = 1
    duplicates: int = 0
    under_way: int = 6
    states: int = 6_000_000
    """About 300 bytes each."""


class Node(NamedTuple):
    """A member between two events."""

    core: RaftCore
    records: tuple[int, ...]
    """The term of each record in the log: with one leader a term, what the record is."""


class State(NamedTuple):
    """The group: members and messages by number, and what was promised on the way."""

    nodes: tuple[int, ...]
    flying: tuple[int, ...]
    """Messages under way, each once, in order."""
    committed: tuple[int, ...]
    """The terms of the committed records: the longest prefix that any member ever committed."""
    committed_in: tuple[int, ...]
    """The term in which each of them was committed."""
    leaders: tuple[tuple[int, int], ...]
    """Term and member of every leader that there was."""
    crashes: int
    duplicates: int


class Explorer:
    """The search, with what it remembers."""

    def __init__(self, bounds: Bounds, core: type[RaftCore] = RaftCore) -> None:
        self.bounds, self._core = bounds, core
        self._nodes: list[Node] = []
        self._node_numbers: dict[tuple[object, ...], int] = {}
        self._messages: list[RaftMessage] = []
        self._message_numbers: dict[RaftMessage, int] = {}
        self._steps: dict[tuple[int, object], tuple[int, tuple[int, ...]]] = {}
        self.states = self.depth = 0
        self.complete = False
        self._words: list[str] = []
        self._parents: dict[int, int] = {}
        """Hashes of the states that were seen, each with that of the state before it."""

    def start(self) -> State:
        """The group before anything happened."""
        nodes = tuple(self._number(self._build(name, StoredState(), LogView())) for name in NAMES)
        return State(nodes, (), (), (), (), 0, 0)

    def run(self, seconds: float, clock: Iterable[float], *script: str) -> None:
        """Search until the time is over or nothing is left; from the end of a script, if given."""
        state = self.start()
        for word in script:
            state = dict(self._moves(state))[word]
        origin, self._parents = state, {hash(state): 0}
        times = iter(clock)
        deadline = next(times) + seconds
        level = [state]
        while level:
            following: list[State] = []
            for parent in level:
                self.states = len(self._parents)
                if next(times) > deadline or self.states > self.bounds.states:
                    return
                self._visit(origin, parent, following)
            level = following
            self.depth += bool(level)
        self.states, self.complete = len(self._parents), True

    def _visit(self, origin: State, parent: State, following: list[State]) -> None:
        came = hash(parent)
        try:
            for _, state in self._moves(parent):
                if (here := hash(state)) not in self._parents:
                    self._parents[here] = came
                    following.append(state)
        except (Broken, LogConflict) as broken:
            raise Broken(f"{broken}, one step after\n{self._story(origin, came)}") from None

    def _story(self, origin: State, last: int) -> str:
        """The events that led to a state, found again by its hash."""
        path = [last]
        while path[-1] != hash(origin):
            path.append(self._parents[path[-1]])
        words, state = [], origin
        for wanted in reversed(path[:-1]):
            word, state = next(each for each in self._moves(state) if hash(each[1]) == wanted)
            words.append(word)
        return "\n".join(words)

    def _moves(self, state: State) -> Iterator[tuple[str, State]]:
        """Every event that can happen now, and the state after it."""
        bounds = self.bounds
        for index, number in enumerate(state.nodes):
            core, name = self._nodes[number].core, NAMES[index]
            if index and not any(self._nodes[each].core.term for each in state.nodes):
                continue  # All are alike in the beginning.
            if core.leadership is None and core.term < bounds.terms:
                yield f"timeout {name}", self._after(state, index, "timeout")
            if core.leadership is not None:
                yield f"lost quorum {name}", self._after(state, index, "lost quorum")
            if core.accepts_writes and core.log.end < bounds.records:
                yield f"write {name}", self._after(state, index, "write")
            if state.crashes < bounds.crashes:
                crashed = state._replace(crashes=state.crashes + 1)
                yield f"crash {name}", self._after(crashed, index, "crash")
        for number in state.flying:
            message = self._messages[number]
            index = NAMES.index(message.receiver)
            taken = state._replace(flying=tuple(n for n in state.flying if n != number))
            word = self._words[number]
            yield word, self._after(taken, index, message)
            if state.crashes < bounds.crashes:
                crashed = taken._replace(crashes=state.crashes + 1)
                yield "torn " + word, self._after(crashed, index, ("torn", message))
            if state.duplicates < bounds.duplicates:
                twice = state._replace(duplicates=state.duplicates + 1)
                yield "twice " + word, self._after(twice, index, message)

    def _after(self, state: State, index: int, event: object) -> State:
        """The state after an event at one member."""
        before = state.nodes[index]
        key = before, event
        if key not in self._steps:
            self._steps[key] = self._step(self._nodes[before].core, event)
        after, sent = self._steps[key]
        nodes = (*state.nodes[:index], after, *state.nodes[index + 1 :])
        flying = state.flying
        if sent:
            flying = tuple(sorted({*flying, *sent}))[-self.bounds.under_way :]
        return self._check(state._replace(nodes=nodes, flying=flying), index)

    def _step(self, core: RaftCore, event: object) -> tuple[int, tuple[int, ...]]:
        """What a member does with an event: a new member, and what it sends."""
        core = clone(core)
        durable = core.stored, core.log
        torn = isinstance(event, tuple)
        if event == "crash":
            return self._number(self._build(core.config.me, *durable)), ()
        if event == "timeout":
            core.campaign()
        elif event == "lost quorum":
            core._follow(core.term, None)
        elif event == "write":
            core.grow(1)
        else:
            core.step(event[1] if isinstance(event, tuple) else event)  # type: ignore[arg-type]
        sent: list[RaftMessage] = []
        while ready := core.take_ready():
            sent += ready.messages
            if torn:
                # The state was stored; the log and what waits for its sync were not.
                return self._number(self._build(core.config.me, core.stored, durable[1])), tuple(
                    map(self._message_number, sent)
                )
            if ready.leader_record:
                core.grow(1)
            core.note_synced(core.log.end, core.cuts)
            sent += ready.after_sync
        return self._number(core), tuple(map(self._message_number, sent))

    def _check(self, state: State, index: int) -> State:
        """Raft's promises; returns the state with what is promised from now on."""
        core, records = self._nodes[state.nodes[index]]
        if core.leadership is not None and (core.term, index) not in state.leaders:
            for term, other in state.leaders:
                if term == core.term:
                    raise Broken(f"{NAMES[index]} and {NAMES[other]} both led in term {term}")
            # One that is elected late, in a term that is over, need not have what came after it.
            due = sum(term < core.term for term in state.committed_in)
            if records[:due] != state.committed[:due]:
                raise Broken(f"{NAMES[index]} leads without a committed record")
            state = state._replace(leaders=tuple(sorted((*state.leaders, (core.term, index)))))
        mine = records[: core.commit]
        shorter = min(len(mine), len(state.committed))
        if mine[:shorter] != state.committed[:shorter]:
            raise Broken(f"{NAMES[index]} committed {mine} where {state.committed} was")
        if len(mine) > len(state.committed):
            new = (core.term,) * (len(mine) - len(state.committed))
            state = state._replace(committed=mine, committed_in=state.committed_in + new)
        self._check_durable(state)
        self._check_matching(state, records)
        return state

    def _check_durable(self, state: State) -> None:
        """What was ever committed is durable on a majority, unchanged."""
        held = 0
        for number in state.nodes:
            core, records = self._nodes[number]
            held += records[: core.log.synced][: len(state.committed)] == state.committed
        if held * 2 <= len(NAMES):
            raise Broken(f"{state.committed} was committed and is not on a majority")

    def _check_matching(self, state: State, mine: tuple[int, ...]) -> None:
        """Two logs with a record in common are the same up to it."""
        for other in state.nodes:
            theirs = self._nodes[other].records
            if theirs is mine:
                continue
            for offset in range(min(len(mine), len(theirs)), 0, -1):
                if mine[offset - 1] == theirs[offset - 1]:
                    if mine[:offset] != theirs[:offset]:
                        raise Broken(f"logs {mine} and {theirs} share a record and differ before")
                    break

    def _build(self, name: str, stored: StoredState, log: LogView) -> RaftCore:
        config = RaftConfig(
            group="g",
            me=name,
            members=NAMES,
            append_bytes_max=1,
            pre_vote=False,
            check_quorum=False,
        )
        log = LogView(log.first, log.synced, log.synced, log.truncate(log.synced).epochs)
        return self._core(config, stored, log, lambda below: 0, lambda start, limit: limit)

    def _number(self, core: RaftCore) -> int:
        key = fingerprint(core)
        if key not in self._node_numbers:
            self._node_numbers[key] = len(self._nodes)
            ends = range(1, core.log.end + 1)
            self._nodes.append(Node(core, tuple(map(core.log.term_before, ends))))
        return self._node_numbers[key]

    def _message_number(self, message: RaftMessage) -> int:
        if message not in self._message_numbers:
            self._message_numbers[message] = len(self._messages)
            self._messages.append(message)
            self._words.append(describe(message))
        return self._message_numbers[message]


def describe(message: RaftMessage) -> str:
    """A message on a line, with what tells it from others of its kind."""
    fields = {
        name: value
        for name, value in msgspec.structs.asdict(message).items()
        if name in ("term", "start", "size", "accepted", "offset", "granted", "commit")
    }
    link = f"{type(message).__name__} {message.sender}->{message.receiver}"
    return link + "".join(f" {name}={value}" for name, value in fields.items())


def clone(core: RaftCore) -> RaftCore:
    """A core of its own with the same state."""
    twin = copy.copy(core)
    twin._votes = dict(core._votes)
    twin._messages, twin._after_sync, twin._writes = [], [], []
    if core.leadership is not None:
        leadership = copy.copy(core.leadership)
        leadership.followers = {
            name: copy.copy(follower) for name, follower in leadership.followers.items()
        }
        twin.leadership = leadership
    return twin


def fingerprint(core: RaftCore) -> tuple[object, ...]:
    """Everything that decides what a core does next."""
    leadership: tuple[object, ...] = ()
    if core.leadership is not None:
        leadership = (
            core.leadership.start,
            tuple(
                (follower.match, follower.next, follower.mode, follower.waiting)
                for follower in core.leadership.followers.values()
            ),
        )
        for follower in core.leadership.followers.values():
            follower.heard = False
    core._elapsed = core._heartbeat_elapsed = 0
    votes = tuple(sorted(core._votes.items())) if core.role.value == "candidate" else ()
    return (
        core.config.me,
        core.stored,
        core.log,
        core.role,
        core.leader,
        core.commit,
        core._agreed,
        core._leader_commit,
        votes,
        leadership,
    )


def ticking() -> Iterator[float]:
    """The time, as often as it is asked for."""
    while True:
        yield time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="stop after so long")
    for name, default in vars(Bounds()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    given = vars(parser.parse_args())
    seconds = given.pop("seconds")
    explorer = Explorer(Bounds(**given))
    explorer.run(seconds, ticking())
    full = explorer.states > explorer.bounds.states
    stop = "stopped by the limit of " + ("states" if full else "time")
    rest = "all states within the bounds" if explorer.complete else stop
    # The one line that this program is run for.
    reach = f"{explorer.states:,} states, depth {explorer.depth}, {rest}"
    sys.stdout.write(f"{reach}; no promise broken\n")


if __name__ == "__main__":
    main()
