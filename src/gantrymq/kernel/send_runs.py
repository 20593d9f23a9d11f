"""Plain sends of one read, from their frames to their records and answers: the pure twin.

Most of what a broker receives are sends about which nothing has to be decided: the topic is known,
the queue exists, nothing asks for a delay or a transaction. Those that follow each other in one
read become one `SendRun`, which is stored and answered as a whole. Everything else becomes a
`Command`. Which sends are plain is said by `is_plain_send`; the compiled twin holds a run in C
arrays, and leaves headers that are not written as usual to `Command`.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel.frames import Buffer, cut_commands
from gantrymq.kernel.records import RecordItem
from gantrymq.kernel.sends import PlainSend, read_send, stored_answer
from gantrymq.kernel.signing import HmacSha1
from gantrymq.model import TIMER_TOPIC, TopicConfig
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import ONEWAY_FLAG, RESPONSE_FLAG, Command
from gantrymq.protocol.record import record_size
from gantrymq.protocol.signed_fields import ACCESS_KEY, SIGNATURE

UNIQUE_BYTES_MAX: Final = 255
SIGNATURE_BYTES: Final = 28
_LETTER = re.compile(r"[a-z]\Z")
_LEGAL = re.compile(r"[|a-zA-Z0-9_+-]{1,255}\Z")


class SendRules(NamedTuple):
    """Which sends are plain, and what the broker adds to them."""

    topics: dict[str, TopicConfig]
    """Topics that sends may go to."""
    tail: bytes
    """Properties that the broker adds."""
    store_host: bytes
    properties_max: int
    """Bytes of the properties in their stored form; of what is longer, somebody has to count the
    properties."""
    body_max: int
    record_max: int


class SendAccess(NamedTuple):
    """Whose sends are plain on a connection where each request has to be signed.

    Plain are sends to topics to which this key was allowed to send, with its signature over nothing
    but the key and the fields of a send. Everything else is left to the guard, and so are all sends
    of a run in which one signature is wrong.
    """

    access_key: bytes
    key: HmacSha1
    topics: set[str]

    def may_be_signed(self, command: Command) -> bool:
        """Whether this key seems to have signed a send, and nothing but the fields of a send."""
        ext = command.ext
        return (
            all(value.isascii() for value in ext.values())
            and ext.get(ACCESS_KEY, "").encode() == self.access_key
            and len(ext.get(SIGNATURE, "")) == SIGNATURE_BYTES
            and all(_LETTER.match(name) for name in ext.keys() - {ACCESS_KEY, SIGNATURE})
        )

    def is_signed(self, command: Command) -> bool:
        """Whether the signature of a send is right."""
        ext = command.ext
        names = tuple(sorted(ext.keys() - {SIGNATURE}))
        return self.may_be_signed(command) and self.key.matches(
            ext, names, command.body, ext[SIGNATURE]
        )


class SendQueue(Protocol):
    """The end of a queue, where the next message goes: a `QueueTail` with the name of its topic."""

    topic_bytes: bytes
    next: int


Queues = dict[tuple[str, int], Any]
"""Topic and queue id to what is a `SendQueue`."""
OpenQueue = Callable[[str, int], Any]
"""The same for a queue that is not there yet."""


SendCount = tuple[str, int, int, list[tuple[int, int]]]
"""Topic, messages and bytes; and for each bound that some are larger than, its number and how many
are, without those that are larger than the next bound, too."""


def is_plain_send(
    command: Command, rules: SendRules, born_host: bytes
) -> tuple[PlainSend, int] | None:
    """The fields of a plain send and the size of its record; None if it is not plain."""
    if command.code != RequestCode.SEND_MESSAGE_V2 or command.flag & RESPONSE_FLAG:
        return None
    plain = read_send(command.ext, rules.tail)
    if plain is None:
        return None
    name, queue_id, _, _, _, _, stored, unique, waits = plain
    topic = rules.topics.get(name)
    if topic is None or name == TIMER_TOPIC or not _LEGAL.match(name):
        return None
    size = record_size(len(name), len(command.body), len(stored))
    size += 12 * (len(born_host) == 20) + 12 * (len(rules.store_host) == 20)
    fits = (
        0 <= queue_id < max(topic.write_queue_nums, topic.read_queue_nums)
        and len(stored) <= rules.properties_max
        and len(command.body) <= rules.body_max
        and size <= rules.record_max
    )
    is_named = unique.isascii() and unique.isalnum() and len(unique) <= UNIQUE_BYTES_MAX
    return (plain, size) if fits and is_named and waits and b"\0" not in stored else None


class SendRun:
    """Plain sends of one connection that follow each other, stored and answered together.

    It goes through the store as an append does: the store sets `status` and `error` and calls
    `reply` once.
    """

    wait = True
    """Every sender waits for the disk; others are not plain."""

    def __init__(
        self, rules: SendRules, born_host: bytes, access: SendAccess | None = None
    ) -> None:
        self._rules, self._born_host, self._access = rules, born_host, access
        self._sends: list[tuple[Command, PlainSend, int]] = []
        self._queues: list[SendQueue] = []
        self._offsets: list[int] = []
        self._positions: list[int] = []
        self.size = self.asked = 0
        """Bytes of all records, and how many senders want an answer."""
        self.connection: Any = None
        self.reply: Any = None
        self.status: Any = None
        self.error = ""

    def __len__(self) -> int:
        return len(self._sends)

    def add(self, command: Command) -> bool:
        """Take one more send; False if it is not plain."""
        found, access = is_plain_send(command, self._rules, self._born_host), self._access
        if found is None:
            return False
        if access is not None:
            topic = found[0][0]
            if topic not in access.topics or not access.may_be_signed(command):
                return False
        self._append(command, *found)
        return True

    def _append(self, command: Command, plain: PlainSend, size: int) -> None:
        self._sends.append((command, plain, size))
        self.size += size
        self.asked += not command.flag & ONEWAY_FLAG

    def commands(self) -> list[Command]:
        """The sends one by one, for whoever has to look at each."""
        return [command for command, _, _ in self._sends]

    def split(self, bytes_max: int) -> "SendRun | None":
        """Move the sends in front whose records fit into so many bytes to a run of their own; None
        if not even the first one fits."""
        front = SendRun(self._rules, self._born_host)
        front.connection, front.reply = self.connection, self.reply
        sends, self._sends = self._sends, []
        self.size = self.asked = 0
        for number, send in enumerate(sends):
            run = self
            if number == len(front) and front.size + send[2] <= bytes_max:
                run = front
            run._append(*send)
        return front if len(front) else None

    # in the store

    def place(self, queues: Queues, open_queue: OpenQueue) -> None:
        """Give each message the next offset of its queue."""
        self._queues, self._offsets = [], []
        for _, plain, _ in self._sends:
            queue = queues.get(plain[:2])
            if queue is None:
                queue = open_queue(*plain[:2])
            self._queues.append(queue)
            self._offsets.append(queue.next)
            queue.next += 1

    def take_back(self) -> None:
        """Undo `place`: the next messages get these offsets."""
        for queue, offset in zip(reversed(self._queues), reversed(self._offsets), strict=True):
            queue.next = offset

    def record_items(self) -> list[RecordItem]:
        """What `encode_records` makes records of."""
        return [
            (queue.topic_bytes, plain[1], offset, plain[2], plain[3], plain[4], self._born_host,
             plain[5], 0, command.body, plain[6])
            for (command, plain, _), queue, offset in zip(
                self._sends, self._queues, self._offsets, strict=True
            )
        ]  # fmt: skip

    def lie_at(self, position: int) -> None:
        """Note the log offset of each record; the first one lies at `position`."""
        self._positions = []
        for _, _, size in self._sends:
            self._positions.append(position)
            position += size

    # when they are stored

    def answers(self, code: int) -> bytes:
        """The answers of all whose senders want one, frame behind frame."""
        frames = [
            stored_answer(
                command.codec, code, command.opaque, self._rules.store_host, position,
                plain[1], offset, plain[7],
            )
            for (command, plain, _), position, offset in zip(
                self._sends, self._positions, self._offsets, strict=True
            )
            if not command.flag & ONEWAY_FLAG
        ]  # fmt: skip
        return b"".join(frames)

    def counts(self, bounds: Sequence[int]) -> list[SendCount]:
        """What statistics ask for, of each stretch of neighbours with one topic."""
        found = []
        for topic, sends in groupby(self._sends, lambda send: send[1][0]):
            sizes = [size for _, _, size in sends]
            classes = Counter(bisect_left(bounds, size) - 1 for size in sizes)
            larger = [(number, classes[number]) for number in sorted(classes) if number >= 0]
            found.append((topic, len(sizes), sum(sizes), larger))
        return found


Request = Command | SendRun


def cut_requests(
    buffer: Buffer,
    size_max: int,
    count_max: int,
    rules: SendRules | None,
    born_host: bytes,
    access: SendAccess | None = None,
) -> tuple[list[Request], int, int, ProtocolError | None]:
    """Cut frames as `cut_commands` does, and gather neighbouring plain sends into runs.

    Returns the requests, how many frames they were, how many bytes, and the error of the first bad
    frame. Without rules nothing is plain; with `access` only what is signed.
    """
    commands, used, error = cut_commands(buffer, size_max, count_max)
    requests: list[Request] = []
    run: SendRun | None = None
    for command in commands:
        if rules is None:
            requests.append(command)
            continue
        if run is None:
            run = SendRun(rules, born_host, access)
        if not run.add(command):
            requests.append(command)
            run = None
        elif len(run) == 1:
            requests.append(run)
    if access is not None:
        requests = [each for request in requests for each in _checked(request, access)]
    return requests, len(commands), used, error


def _checked(request: Request, access: SendAccess) -> Sequence[Request]:
    """A run if all its signatures are right; otherwise its sends, one by one."""
    if isinstance(request, Command) or all(map(access.is_signed, request.commands())):
        return [request]
    return request.commands()
