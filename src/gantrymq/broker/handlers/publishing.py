"""The four requests by which a writer publishes an epoch.

The writer asks for its state and stages its messages. Then it sends prepare to every broker, decide
to one (the coordinator), and publish to every broker, to the coordinator last. Any client may
repeat any request at any time: only the first one has an effect.
"""

from gantrymq.broker.errors import BadRequest, NotPermitted
from gantrymq.broker.publishing.journal import NoteJournal
from gantrymq.broker.publishing.notes import DecidedNote, EnrolledNote, PreparedNote
from gantrymq.broker.publishing.publisher import EpochPublisher
from gantrymq.broker.publishing.staged import check_share
from gantrymq.broker.publishing.writer_table import WriterTable
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import GROUP_BYTES_MAX, WRITE
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.publishing import (
    EpochDecision,
    EpochRequest,
    read_decision,
    read_share,
)
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store


class PublishHandler:
    """GET_WRITER_STATE, PREPARE_EPOCH, DECIDE_EPOCH and PUBLISH_EPOCH."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        writers: WriterTable,
        journal: NoteJournal,
        publisher: EpochPublisher,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._writers, self._journal, self._publisher = writers, journal, publisher

    async def state(self, connection: Connection, command: Command) -> Command:
        """GET_WRITER_STATE (40101): the last epochs that a writer decided and published."""
        h = c.GET_WRITER_STATE.request.parse(command.ext)
        self._check_writer(h.writer)
        return response(command, body=fastjson.dumps(self._writers.find(h.writer).state))

    async def prepare(self, connection: Connection, command: Command) -> Command:
        """PREPARE_EPOCH (40102): check that a share can be published, and make that durable."""
        h = self._parsed(command)
        share = read_share(command.body)
        lowest = await check_share(self._store, self._registry.topics, share)
        known = self._writers.find(h.writer).coordinator
        if not known and h.coordinator != self._config.broker_name:
            await self._journal.write(EnrolledNote(writer=h.writer, coordinator=h.coordinator))
        self._agree(h, self._writers.find(h.writer).coordinator or h.coordinator)
        if share and self._writers.find(h.writer).published < h.epoch:
            await self._journal.write(PreparedNote(writer=h.writer, epoch=h.epoch, lowest=lowest))
            if self._store.log_min > lowest:  # retention was faster than the note
                await check_share(self._store, self._registry.topics, share)
        await self._journal.durable()
        return response(command)

    async def decide(self, connection: Connection, command: Command) -> Command:
        """DECIDE_EPOCH (40103): commit an epoch; answers the decision that holds."""
        h = self._parsed(command)
        wanted = read_decision(command.body)
        entry = self._writers.find(h.writer)
        self._agree(h, entry.coordinator or h.coordinator)
        if h.coordinator != self._config.broker_name:
            raise BadRequest(f"decisions of {h.writer} are kept by {h.coordinator}, not here")
        if entry.decided < h.epoch:
            if entry.decision is not None:
                raise BadRequest(
                    f"epoch {entry.decided} of {h.writer} is decided and not yet published: "
                    "publish it before the next one"
                )
            await self._decide(h, wanted)
            entry = self._writers.find(h.writer)
            self._agree(h, entry.coordinator)
        holds = entry.decision if entry.decided == h.epoch else None
        await self._journal.durable()
        return response(command, body=fastjson.dumps(holds or EpochDecision()))

    async def _decide(self, h: EpochRequest, wanted: EpochDecision) -> None:
        note = DecidedNote(
            writer=h.writer, epoch=h.epoch, coordinator=h.coordinator, decision=wanted
        )
        await self._journal.write(note)

    async def publish(self, connection: Connection, command: Command) -> Command:
        """PUBLISH_EPOCH (40104): make a share visible; answers whether all of it is."""
        h = self._parsed(command)
        progress = await self._publisher.publish(h.writer, h.epoch, read_share(command.body))
        return response(command, body=fastjson.dumps(progress))

    # checks

    def _parsed(self, command: Command) -> EpochRequest:
        h = EpochRequest.parse(command.ext)
        self._check_writer(h.writer)
        if h.epoch < 0:
            raise BadRequest(f"epochs are counted from 0, there is no epoch {h.epoch}")
        return h

    def _check_writer(self, writer: str) -> None:
        if not writer or len(writer.encode()) > GROUP_BYTES_MAX:
            raise BadRequest(f"a writer's id has 1 to {GROUP_BYTES_MAX} bytes, not {writer[:64]!r}")
        if not self._config.broker_permission & WRITE:
            raise NotPermitted(f"the broker[{self._config.broker_ip1}] takes no messages")

    def _agree(self, h: EpochRequest, known: str) -> None:
        if known != h.coordinator:
            raise BadRequest(
                f"decisions of {h.writer} are kept by {known}, not by {h.coordinator or 'nobody'}"
            )
