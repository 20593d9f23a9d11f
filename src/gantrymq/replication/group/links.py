"""The connections between the members of a raft group.

Each member connects to every other one and sends its messages over that connection; theirs come
over the connections that they made. A message that cannot be sent is dropped: the rules expect it.
Of two connections from one member only the newer is read, so messages of a process that has ended
never come behind those of the next one.

A link that was cut is made anew: the system breaks a connection on which nothing was acknowledged
for a while, because TCP's pauses would double, and an election would wait for them.

A member that connects greets first. One that is no member of this group, or that has another idea
of it, is refused with a reason, which its log shows. Where members have a key, a connection that
has not proved it changes nothing: it is not read, and it takes no other one's place.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

import msgspec

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.base.network import Listener, Network, limit_silence
from gantrymq.base.tokens import challenge
from gantrymq.replication.group.group_key import ANSWERS, CONNECTS, GroupKey
from gantrymq.replication.group.identity import GroupIdentity
from gantrymq.replication.group.wire import (
    VERSION,
    FrameReader,
    Greeting,
    GreetingRefused,
    Proof,
    encode_frame,
)
from gantrymq.replication.raft.messages import RaftMessage

log = logging.getLogger(__name__)

CONNECT_SECONDS_MAX: Final = 1.0
AGAIN_SECONDS: Final = 0.1
AGAIN_SECONDS_MAX: Final = 0.5
SILENT_SECONDS_MAX: Final = 1.5
"""How long what was sent may stay unacknowledged."""
UNSENT_BYTES_MAX: Final = 64 << 20
"""A member that does not read is sent nothing more: what was written to it waits in memory."""
GREETING_SECONDS_MAX: Final = 5.0
SAME_KEY: Final = "give all members the same innerClientAuthenticationCredentials"


class MemberLinks:
    """All connections of one member."""

    def __init__(
        self,
        identity: GroupIdentity,
        network: Network,
        greeting: Callable[[str], Greeting],
        on_message: Callable[[RaftMessage], None],
        on_greeting: Callable[[Greeting], None],
        on_lost: Callable[[str], None],
        key: GroupKey | None = None,
    ) -> None:
        """`greeting` makes the one for a member; `on_lost` hears whose messages end."""
        self.identity, self._network, self.key = identity, network, key
        self._greeting, self.on_message = greeting, on_message
        self._on_greeting, self._on_lost = on_greeting, on_lost
        self._outgoing: dict[str, OutgoingLink] = {}
        self._incoming: dict[str, IncomingLink] = {}
        self._guests: dict[IncomingLink, None] = {}
        """Connections that have not greeted yet."""
        self._seen: dict[str, asyncio.Event] = {}
        """Set when a member connects: it is there, so it can be connected to."""
        self._listener: Listener | None = None
        self._background = Background(f"raft member {identity.me}")
        self._said: dict[str, str] = {}

    async def start(self, bind_address: str) -> None:
        """Open the raft port and connect to the others."""
        port = self.identity.addresses[self.identity.me][1]
        self._listener = await self._network.listen(bind_address, port, lambda: IncomingLink(self))
        for name in self.identity.others:
            self._background.keep_up(lambda name=name: self._stay_connected(name))  # type: ignore[misc]

    async def stop(self) -> None:
        """Close everything."""
        await self._background.close()
        if self._listener is not None:
            await self._listener.close()
        for link in (*self._outgoing.values(), *self._incoming.values(), *self._guests):
            link.close()

    @property
    def connected(self) -> list[str]:
        """The members that messages can be sent to."""
        return sorted(self._outgoing)

    def send(self, message: RaftMessage, payload: bytes = b"") -> None:
        """Send, or drop if there is no connection or no room."""
        link = self._outgoing.get(message.receiver)
        if link is not None:
            link.send(encode_frame(message, payload))

    # the connections that this member made

    async def _stay_connected(self, name: str) -> None:
        host, port = self.identity.addresses[name]
        pause = AGAIN_SECONDS
        while True:
            try:
                link = await self._network.connect(
                    host, port, lambda: OutgoingLink(self, name), CONNECT_SECONDS_MAX
                )
                why = await link.ended
                if link.was_accepted:
                    pause = AGAIN_SECONDS
            except GantryError as error:
                why = str(error)
            self._outgoing.pop(name, None)
            self.say(name, why)
            pause = await self._pause(name, pause)

    async def _pause(self, name: str, seconds: float) -> float:
        """Wait before the next try, or until the member itself connects; returns the next wait."""
        wake = self._seen[name] = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            return min(2 * seconds, AGAIN_SECONDS_MAX)
        return AGAIN_SECONDS

    def accepted(self, link: "OutgoingLink", theirs: Greeting) -> None:
        """The other side has answered the greeting with its own."""
        self._outgoing[link.name] = link
        self._said.pop(link.name, None)
        log.info("%s is connected to %s", self.identity.me, link.name)
        self._on_greeting(theirs)

    def say(self, name: str, why: str) -> None:
        """Log why a member is not connected, once for each reason."""
        if self._said.get(name) != why:
            self._said[name] = why
            log.warning("no connection to %s of raft group %s: %s", name, self.identity.group, why)

    # the connections that others made

    def came(self, link: "IncomingLink") -> None:
        self._guests[link] = None

    def refused(self, fault: str) -> None:
        log.error("a connection to raft group %s is refused: %s", self.identity.group, fault)

    def joined(self, link: "IncomingLink", theirs: Greeting) -> None:
        """Take a connection as that of a member."""
        self._guests.pop(link, None)
        if theirs.sender in self._seen:
            self._seen[theirs.sender].set()
        before = self._incoming.get(theirs.sender)
        self._incoming[theirs.sender] = link
        if before is not None:
            before.close()
        self._on_greeting(theirs)

    def gone(self, link: "IncomingLink") -> None:
        self._guests.pop(link, None)
        if link.name is not None and self._incoming.get(link.name) is link:
            del self._incoming[link.name]
            self._on_lost(link.name)

    def greeting(self, receiver: str) -> Greeting:
        """The greeting for a member, with a new challenge if there is a key to prove."""
        made = self._greeting(receiver)
        if self.key is None:
            return made
        return msgspec.structs.replace(made, challenge=challenge())

    def fault_of(self, theirs: Greeting) -> str | None:
        """Why who sent a greeting is no fellow member."""
        ours, me = self._greeting(theirs.sender), self.identity.me
        if theirs.version != VERSION:
            return f"{theirs.sender} speaks version {theirs.version}, {me} speaks {VERSION}"
        if theirs.group != ours.group:
            return f"{theirs.sender} is of raft group {theirs.group}, {me} of {ours.group}"
        if theirs.sender == me:
            return f"two members have the id {me}: give every one its own dLegerSelfId"
        if theirs.receiver != me:
            return (
                f"{theirs.sender} looks for {theirs.receiver} at the address of {me}: "
                "give all members the same dLegerPeers"
            )
        if theirs.members != ours.members:
            return (
                f"{theirs.sender} has the members {', '.join(theirs.members)}, {me} has "
                f"{', '.join(ours.members)}: give all members the same dLegerPeers"
            )
        if theirs.file_bytes != ours.file_bytes:
            return (
                f"mappedFileSizeCommitLog of {theirs.sender} is {theirs.file_bytes}, that of {me} "
                f"{ours.file_bytes}: give all members the same"
            )
        if bool(theirs.challenge) != (self.key is not None):
            without = me if self.key is None else theirs.sender
            return f"{without} has no key: {SAME_KEY}"
        return None


class _Link(asyncio.Protocol):
    """What both directions have in common."""

    def __init__(self, links: MemberLinks) -> None:
        self._links, self._reader = links, FrameReader()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        limit_silence(transport, SILENT_SECONDS_MAX)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(GREETING_SECONDS_MAX, self.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._greeted()

    def _greeted(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class OutgoingLink(_Link):
    """A connection that this member made: it sends messages."""

    def __init__(self, links: MemberLinks, name: str) -> None:
        super().__init__(links)
        self.name = name
        self.was_accepted = False
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why the connection ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        self._mine = self._links.greeting(self.name)
        self._transport.write(encode_frame(self._mine))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end("the connection was closed")

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                if isinstance(frame, GreetingRefused):
                    self._end(f"it refuses this member: {frame.reason}")
                elif isinstance(frame, Greeting) and not self.was_accepted:
                    self._accept(frame)
        except ProtocolError as error:
            self._end(str(error))
            self.close()

    def _accept(self, theirs: Greeting) -> None:
        self._greeted()
        fault = self._links.fault_of(theirs)
        key = self._links.key
        if fault is None and theirs.sender != self.name:
            fault = f"{theirs.sender} answers at the address of {self.name}"
        if fault is None and key and not key.proves(ANSWERS, self._mine, theirs, theirs.proof):
            fault = f"{self.name} has another key: {SAME_KEY}"
        if fault is not None:
            self._end(fault)
            self.close()
            return
        if key is not None:
            self.send(encode_frame(Proof(proof=key.proof(CONNECTS, self._mine, theirs))))
        self.was_accepted = True
        self._links.accepted(self, theirs)

    def send(self, frame: bytes) -> None:
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size() < UNSENT_BYTES_MAX:
            transport.write(frame)

    def _end(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)


class IncomingLink(_Link):
    """A connection that another member made: its messages come over it."""

    def __init__(self, links: MemberLinks) -> None:
        super().__init__(links)
        self.name: str | None = None
        """Who it is; None until it has greeted and proved it."""
        self._greetings: tuple[Greeting, Greeting] | None = None
        """Ours and theirs, while a proof is missing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._links.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._links.gone(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except ProtocolError as error:
            log.error("a connection to the raft port is closed: %s", error)
            self.close()

    def _take(self, frame: object) -> None:
        if self.name is None:
            if isinstance(frame, Greeting) and self._greetings is None:
                self._greet(frame)
            elif isinstance(frame, Proof) and self._greetings is not None:
                self._check(frame, *self._greetings)
            else:
                raise ProtocolError("it did not greet")
        elif isinstance(frame, RaftMessage) and frame.sender == self.name:
            self._links.on_message(frame)

    def _greet(self, theirs: Greeting) -> None:
        assert self._transport is not None
        fault = self._links.fault_of(theirs)
        if fault is not None:
            self._refuse(fault)
            return
        mine, key = self._links.greeting(theirs.sender), self._links.key
        if key is None:
            self._join(theirs)
        else:
            mine = msgspec.structs.replace(mine, proof=key.proof(ANSWERS, mine, theirs))
            self._greetings = mine, theirs
        self._transport.write(encode_frame(mine))

    def _check(self, frame: Proof, mine: Greeting, theirs: Greeting) -> None:
        key = self._links.key
        if key is not None and key.proves(CONNECTS, mine, theirs, frame.proof):
            self._join(theirs)
        else:
            self._refuse(f"{theirs.sender} has another key: {SAME_KEY}")

    def _join(self, theirs: Greeting) -> None:
        self._greeted()
        self.name = theirs.sender
        self._links.joined(self, theirs)

    def _refuse(self, fault: str) -> None:
        assert self._transport is not None
        self._greeted()
        self._links.refused(fault)
        self._transport.write(encode_frame(GreetingRefused(reason=fault)))
        self._transport.close()
