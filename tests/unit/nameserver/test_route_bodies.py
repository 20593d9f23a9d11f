"""Kept route bodies: always the route that the table has now."""

from collections.abc import Callable

import pytest

from gantrymq.model import DataVersion, QueueData, TopicConfig
from gantrymq.nameserver import route_bodies
from gantrymq.nameserver.route_bodies import RouteBodies, encode_route
from gantrymq.nameserver.table import Registration, RouteTable

TOPICS = ("T", "U")


def registration(
    name: str = "a", address: str = "a:1", *, counter: int = 1, queues: int = 8, **more: object
) -> Registration:
    topics = {
        topic: TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
        for topic in TOPICS
    }
    more.setdefault("broker_id", 0)
    return Registration(
        cluster="C",
        name=name,
        address=address,
        version=DataVersion(counter=counter),
        topics=topics,
        **more,  # type: ignore[arg-type]
    )


def two_brokers() -> RouteTable:
    table = RouteTable()
    table.register(registration(), "to a", 0)
    table.register(registration("b", "b:1"), "to b", 0)
    return table


CHANGES: dict[str, Callable[[RouteTable], object]] = {
    "a topic changed": lambda table: table.register(registration(counter=2, queues=4), "to a", 1),
    "a slave came": lambda table: table.register(
        registration(address="s:1", broker_id=1), "to s", 1
    ),
    "another address took over": lambda table: table.register(
        registration(address="c:1"), "to c", 1
    ),
    "the id of an address changed": lambda table: table.register(
        registration(broker_id=1), "to a", 1
    ),
    "acting masters allowed": lambda table: table.register(
        registration(acting_master=True), "to a", 1
    ),
    "filter servers came": lambda table: table.register(
        registration(filter_servers=("f:1",)), "to a", 1
    ),
    "a third broker came": lambda table: table.register(registration("c", "c:1"), "to c", 1),
    "a broker left": lambda table: table.unregister("a", "a:1", 0),
    "a connection closed": lambda table: table.drop_connection("to b"),
    "brokers were silent": lambda table: table.expire(10_000_000),
    "the topic was deleted": lambda table: table.delete_topic("T"),
    "the topic was added elsewhere": lambda table: table.add_topic(
        "T", [QueueData(broker_name="b", read_queue_nums=1, write_queue_nums=1, perm=4)]
    ),
    "a broker was closed for writing": lambda table: table.set_write("a", False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_of_a_route_changes_its_body(change: Callable[[RouteTable], object]) -> None:
    """
    The body is that of the present route, although the one before was kept.
    """
    table = two_brokers()
    bodies = RouteBodies(table)
    before = bodies.body_of("T")
    change(table)
    route = table.route("T")
    after = None if route is None else encode_route(route)

    assert before != after
    assert bodies.body_of("T") == after


def test_a_registration_with_nothing_new_keeps_the_bodies() -> None:
    """
    Brokers register every 30 s; only a new version or another address is news.
    """
    table = two_brokers()
    bodies = RouteBodies(table)
    kept = bodies.body_of("T")
    table.register(registration(), "to a", 30_000)

    assert bodies.body_of("T") is kept


def test_an_outdated_leader_changes_nothing_that_is_answered() -> None:
    """
    It is refused while the leader of a later term is there.
    """
    table = RouteTable()
    later = registration(counter=1)
    later.version.state_version = 2
    table.register(later, "to a", 0)
    bodies = RouteBodies(table)
    before = bodies.body_of("T")
    table.register(registration(address="old:1", queues=1), "to old", 1)

    assert bodies.body_of("T") == before


def test_unknown_topics_are_not_kept() -> None:
    """
    Anybody may ask for any name, and that must not fill the memory.
    """
    bodies = RouteBodies(two_brokers())

    assert bodies.body_of("unknown") is None
    assert not bodies._kept


def test_the_kept_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Above the limit the kept bodies are dropped, and answers are as before.
    """
    table = two_brokers()
    bodies = RouteBodies(table)
    whole = {topic: bodies.body_of(topic) for topic in TOPICS}
    monkeypatch.setattr(route_bodies, "KEPT_BYTES_MAX", len(whole["T"] or b"") + 1)
    small = RouteBodies(table)

    assert {topic: small.body_of(topic) for topic in TOPICS} == whole
    assert list(small._kept) == [TOPICS[-1]]
