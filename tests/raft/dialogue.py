"""Plays the text dialogues of `tests/raft/dialogues`: a command, `----`, and what it prints.

A file has blocks with a blank line between them. Lines that begin with `#` are remarks. The bytes
of every proposed record are its number, so that logs can be compared.
`python tests/raft/dialogue.py` writes what commands print now into the files; read the difference
before you believe it.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from members import GROUP, Member

from gantrymq.replication.raft import LogView, NotServing, RaftConfig, StoredState
from gantrymq.replication.raft.messages import (
    AppendAnswer,
    AppendRequest,
    HeartbeatRequest,
    LogRestartRequest,
    PreVoteAnswer,
    PreVoteRequest,
    RaftMessage,
    VoteAnswer,
    VoteRequest,
)

FOLDER = Path(__file__).parent / "dialogues"
ROUNDS_MAX = 200


def describe(message: RaftMessage) -> str:
    """A message on a line."""
    name = type(message).__name__
    text = f"{message.sender}->{message.receiver} {name} term={message.term}"
    match message:
        case PreVoteRequest() | VoteRequest():
            text += f" log={message.end}@{message.last_term}"
            if isinstance(message, VoteRequest) and message.transfer:
                text += " transfer"
        case PreVoteAnswer() | VoteAnswer():
            text += " granted" if message.granted else " refused"
        case AppendRequest():
            text += f" {message.start}@{message.start_term}+{message.size} commit={message.commit}"
        case AppendAnswer(accepted=True):
            text += f" holds {message.offset}"
        case AppendAnswer(log=LogView() as log):
            text += f" refuses {message.offset}, has {describe_log(log)}"
        case LogRestartRequest():
            text += f" first={message.first}"
        case HeartbeatRequest():
            text += f" commit={message.commit}"
    return text + ("" if getattr(message, "may_vote", True) else " (no vote)")


def describe_log(log: LogView) -> str:
    """The range of a log, and its epoch table as term@offset."""
    epochs = " ".join(f"{epoch.term}@{epoch.offset}" for epoch in log.epochs)
    return f"[{log.first},{log.end}) {epochs or '-'}"


class Dialogue:
    """A group that is told what to do by commands."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._flying: list[RaftMessage] = []
        self._lost: set[tuple[str, str]] = set()
        self._slow: set[str] = set()
        self._records = 0

    def run(self, line: str) -> str:
        """What a command prints."""
        word, *rest = line.split()
        command: Callable[..., Iterator[str]] = getattr(self, "_do_" + word.replace("-", "_"))
        return "\n".join(list(command(*rest)) or ["ok"])

    def _do_add_nodes(self, count: str, *options: str) -> Iterator[str]:
        """add-nodes N [option=number ...]: a group of N, with options of RaftConfig."""
        names = tuple(str(number + 1) for number in range(int(count)))
        given = {name: int(value) for name, value in (each.split("=") for each in options)}
        for index, name in enumerate(names):
            config = RaftConfig(group=GROUP, me=name, members=names, **given)  # type: ignore[arg-type]
            # Member 1 has the least patience, member 2 a tick more, and so on.
            draw = lambda below, index=index: min(index, below - 1)  # noqa: E731
            self._members[name] = Member(config, draw)
        yield from ()

    def _do_campaign(self, name: str) -> Iterator[str]:
        """campaign N: N's patience is over."""
        yield from self._act(name, self._members[name].core.campaign)

    def _do_tick(self, count: str, *names: str) -> Iterator[str]:
        """tick COUNT [N ...]: time passes for all that live, or for some; nothing is delivered."""
        for _ in range(int(count)):
            for name in names or tuple(self._members):
                if self._members[name].alive:
                    yield from self._act(name, self._members[name].core.tick)

    def _do_propose(self, name: str, size: str) -> Iterator[str]:
        """propose N SIZE: N writes a record as leader."""
        member = self._members[name]
        if not member.core.accepts_writes:
            yield f"{name} takes no writes"
            return
        self._records += 1
        record = str(self._records).encode().rjust(int(size), b".")
        yield from self._act(name, lambda: member.propose(record))

    def _do_deliver(self, *links: str) -> Iterator[str]:
        """deliver [A->B ...]: what is under way now arrives, on all links or on some."""
        arrived = [m for m in self._flying if not links or f"{m.sender}->{m.receiver}" in links]
        self._flying = [m for m in self._flying if m not in arrived]
        for message in arrived:
            lost = (message.sender, message.receiver) in self._lost
            member = self._members[message.receiver]
            if lost or not member.alive:
                yield f"lost: {describe(message)}"
                continue
            yield describe(message)
            yield from self._act(message.receiver, lambda m=message, to=member: to.core.step(m))

    def _do_stabilize(self) -> Iterator[str]:
        """stabilize: deliver until nothing is under way."""
        for _ in range(ROUNDS_MAX):
            if not self._flying:
                return
            yield from self._do_deliver()
        yield "never ends"

    def _do_drop(self, link: str) -> Iterator[str]:
        """drop A->B: what is under way on a link is lost."""
        for message in list(self._flying):
            if f"{message.sender}->{message.receiver}" == link:
                self._flying.remove(message)
                yield f"lost: {describe(message)}"

    def _do_cut(self, *names: str) -> Iterator[str]:
        """cut N ...: these are cut off from all others."""
        for name in names:
            for other in self._members:
                self._lost |= {(name, other), (other, name)}
        yield from ()

    def _do_heal(self) -> Iterator[str]:
        """heal: all links work."""
        self._lost = set()
        yield from ()

    def _do_crash(self, name: str) -> Iterator[str]:
        """crash N: N stops, and loses what it did not sync."""
        self._members[name].crash()
        yield from ()

    def _do_restart(self, name: str, *options: str) -> Iterator[str]:
        """restart N [lost=BYTES]: N starts from its disk, which may have lost bytes."""
        member = self._members[name]
        for option in options:
            end = member.durable_log.end - int(option.removeprefix("lost="))
            member.durable_log = member.durable_log.truncate(end)
            member.durable_data = member.durable_data[:end]
            member.stored = StoredState(member.stored.term, member.stored.vote, may_vote=False)
        member.start()
        yield from ()

    def _do_replace(self, name: str) -> Iterator[str]:
        """replace N: an empty member without a vote takes N's place."""
        member = self._members[name]
        member.stored = StoredState(may_vote=False)
        member.durable_log, member.durable_data = LogView(), b""
        member.start()
        yield from ()

    def _do_slow_disk(self, name: str) -> Iterator[str]:
        """slow-disk N: N's syncs do not end."""
        self._slow.add(name)
        yield from ()

    def _do_sync(self, name: str) -> Iterator[str]:
        """sync N: N's syncs end, now and from now on."""
        self._slow.discard(name)
        yield from self._act(name, lambda: None)

    def _do_transfer(self, name: str, to: str) -> Iterator[str]:
        """transfer A B: A hands leadership to B."""
        try:
            yield from self._act(name, lambda: self._members[name].core.transfer(to))
        except NotServing as refusal:
            yield str(refusal)

    def _do_resign(self, name: str) -> Iterator[str]:
        """resign N: N's disk fails."""
        yield from self._act(name, self._members[name].core.resign)

    def _do_forget_leader(self, name: str) -> Iterator[str]:
        """forget-leader N: N no longer waits for its leader."""
        yield from self._act(name, self._members[name].core.forget_leader)

    def _do_retain(self, name: str, first: str) -> Iterator[str]:
        """retain N OFFSET: retention of N deleted what lies before."""
        member = self._members[name]
        member.durable_log = member.durable_log.drop_before(int(first))
        yield from self._act(name, lambda: member.core.note_first(int(first)))

    def _do_status(self) -> Iterator[str]:
        """status: every member on a line."""
        for name, member in self._members.items():
            core = member.core
            if not member.alive:
                yield f"{name} down"
                continue
            role = core.role.value + (" serving" if core.serving else "")
            vote = "" if core.stored.may_vote else " (no vote)"
            yield (
                f"{name} {role} term={core.term} leader={core.leader or '-'} "
                f"log={describe_log(core.log)} commit={core.commit}{vote}"
            )

    def _do_progress(self, name: str) -> Iterator[str]:
        """progress N: what leader N knows of its followers."""
        leadership = self._members[name].core.leadership
        for other, follower in leadership.followers.items() if leadership else ():
            mode = follower.mode.value + (" waiting" if follower.waiting else "")
            yield f"{other} {mode} match={follower.match} next={follower.next}"

    def _do_logs(self) -> Iterator[str]:
        """logs: whether committed bytes are the same everywhere."""
        for name, member in self._members.items():
            data = member.data[member.core.log.first : member.core.commit].decode()
            yield f"{name} {data}"

    def _act(self, name: str, action: Callable[[], None]) -> Iterator[str]:
        member = self._members[name]
        before = member.core._change()
        action()
        sent = list(member.settle() if name in self._slow else member.sync_all())
        self._flying += sent
        after = member.core._change()
        if after != before:
            serving = ", serving" if after.serving else ""
            of = f" of {after.leader}" if after.leader not in (None, name) else ""
            yield f"  {name} is {after.role.value}{of} in term {after.term}{serving}"


def play(text: str) -> str:
    """The text of a dialogue with what its commands print now."""
    dialogue = Dialogue()
    blocks = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n----\n")[0].split("\n")
        lines = [line for line in lines if line != "----"]
        commands = [line for line in lines if line and not line.startswith("#")]
        printed = [dialogue.run(command) for command in commands]
        told = "\n----\n" + "\n".join(printed) if commands else ""
        blocks.append("\n".join(lines) + told)
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.txt")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            path.write_text(play(path.read_text()))
