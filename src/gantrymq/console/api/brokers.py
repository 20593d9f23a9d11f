"""One broker: its figures and settings, and the producers that are connected to it."""

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.bundle.redaction import redact
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.errors import NotThere
from gantrymq.protocol.versions import version_name

TABLE = EndpointTable("brokers")

PRODUCERS_MAX = 1_000


class WantedBroker(OfCluster, frozen=True, kw_only=True):
    """Which broker."""

    broker: str
    id: int = 0
    """0 is the master, or the leader."""


class BrokerDetails(Answer, frozen=True, kw_only=True):
    """What a broker says of itself."""

    broker: str
    id: int
    address: str
    figures: dict[str, str]
    """Its runtime figures, by RocketMQ's names."""
    settings: dict[str, str]
    """Its settings; secrets are hidden."""


class ConnectedProducer(Answer, frozen=True, kw_only=True):
    """A connection of a producer."""

    group: str
    client_id: str
    address: str
    language: str
    version: str


class ConnectedProducers(Answer, frozen=True, kw_only=True):
    """The producers of a broker, by group."""

    producers: list[ConnectedProducer]
    count: int
    """All; at most 1,000 are listed."""
    unknown: str | None = None
    """Why nobody knows: RocketMQ 4.9 does not tell."""


@TABLE.get("/clusters/{cluster}/brokers/{broker}/{id}")
async def show_broker(ask: Ask, wanted: WantedBroker) -> BrokerDetails:
    """The figures and settings of one broker."""
    admin = await ask.admin(wanted.cluster)
    address = await _address(admin, wanted)
    figures = await admin.broker_runtime(address)
    settings = await admin.broker_config(address)
    return BrokerDetails(
        broker=wanted.broker,
        id=wanted.id,
        address=address,
        figures=dict(sorted(figures.items())),
        settings=redact(dict(sorted(settings.items()))),
    )


@TABLE.get("/clusters/{cluster}/brokers/{broker}/{id}/producers")
async def list_producers(ask: Ask, wanted: WantedBroker) -> ConnectedProducers:
    """The producers that are connected to a broker."""
    admin = await ask.admin(wanted.cluster)
    try:
        table = await admin.broker_producers(await _address(admin, wanted))
    except BrokerRefused as error:
        return ConnectedProducers(producers=[], count=0, unknown=str(error))
    found = [
        ConnectedProducer(
            group=group,
            client_id=each.client_id,
            address=each.remote_ip,
            language=str(each.language),
            version=version_name(each.version).lower(),
        )
        for group, producers in sorted(table.data.items())
        for each in producers
    ]
    return ConnectedProducers(producers=found[:PRODUCERS_MAX], count=len(found))


async def _address(admin: Admin, wanted: WantedBroker) -> str:
    """The address that the name servers know; nobody makes the console ask any other."""
    members = (await admin.members()).get(wanted.broker, {})
    if wanted.id not in members:
        raise NotThere(f"no broker {wanted.broker!r} with id {wanted.id} is registered")
    return members[wanted.id]
