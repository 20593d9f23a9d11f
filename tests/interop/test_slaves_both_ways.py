"""A slave of RocketMQ's follows our master, and ours follows theirs."""

import pytest
from clients import Client, GoClient, JavaClient, NodeClient
from master_slave import OURS, SLAVE_NOT_AVAILABLE, BrokerPair, until

pytestmark = pytest.mark.timeout(300)

RELEASES = ["4.9.7", "5.3.3", "5.5.0"]
PAIRS = [(OURS, release) for release in RELEASES] + [(release, OURS) for release in RELEASES]
SETTINGS = {
    # Without it a slave of RocketMQ 5 refuses pulls while its master is alive.
    "slaveReadEnable": "true",
    # Without these a master of RocketMQ 5 waits for no slave, whatever its role is.
    "inSyncReplicas": "2",
    "enableAutoInSyncReplicas": "true",
}
TOPIC, GROUP = "CopiedTopic", "copied-group"


def numbered(part: str, count: int = 50) -> list[str]:
    return [f"{part}-{number}" for number in range(count)]


@pytest.mark.parametrize(("master", "slave"), PAIRS)
def test_a_slave_follows_through_stops_and_kills(master: str, slave: str) -> None:
    """
    The copy goes on after a stop and a kill of either end; a send is SEND_OK when the slave has
    it, and SLAVE_NOT_AVAILABLE without a slave (RocketMQ 5 has no such answer any more); topics and
    progress are copied; the log is the same to the byte.
    """
    with BrokerPair(master, slave, **SETTINGS) as pair:
        pair.create(TOPIC)
        pair.create_group(GROUP)
        sent = numbered("first")
        pair.send(TOPIC, sent)
        _until_in_sync(pair, sent)
        more = numbered("second")
        assert set(pair.send(TOPIC, more)) == {0}
        sent += more
        pair.commit(GROUP, TOPIC, 7)
        # RocketMQ 5's slaves ask for tables every minute only.
        until(lambda: pair.found("slave", TOPIC) == sent, 90)
        until(lambda: pair.progress("slave", GROUP, TOPIC) == "7")

        pair.kill("slave")
        if not master.startswith("5"):
            _until_alone(pair, sent)
        pair.start("slave")
        _until_in_sync(pair, sent)

        pair.kill("master")
        assert pair.found("slave", TOPIC) == sent
        pair.start("master")
        _until_in_sync(pair, sent)

        pair.stop("slave")
        pair.start("slave")
        _until_in_sync(pair, sent)
        until(lambda: pair.found("slave", TOPIC) == sent)
        assert pair.found("master", TOPIC) == sent
        ours, theirs = pair.logs()
        assert ours == theirs


def _until_in_sync(pair: BrokerPair, sent: list[str]) -> None:
    """Send until the slave acknowledges in time."""
    _send_until(pair, sent, 0)


def _until_alone(pair: BrokerPair, sent: list[str]) -> None:
    """Send until the master has noticed that the slave is gone."""
    _send_until(pair, sent, SLAVE_NOT_AVAILABLE)


def _send_until(pair: BrokerPair, sent: list[str], code: int) -> None:
    def answered() -> bool:
        body = f"probe-{len(sent)}"
        (got,) = pair.send(TOPIC, [body])
        sent.append(body)
        return got == code

    until(answered)


@pytest.mark.parametrize(
    "client", [JavaClient("4.9.8"), JavaClient("5.3.3"), GoClient(), NodeClient()], ids=repr
)
def test_consumers_go_on_with_our_slave(client: Client) -> None:
    """
    A consumer that is up reads on when the master is back; one that starts while it is away gets
    everything from the slave. The Go client asks only masters for offsets, so it waits with that.
    """
    with BrokerPair(OURS, OURS) as pair:
        pair.create(TOPIC)
        sent = numbered("before", 20)
        pair.send(TOPIC, sent)
        _until_in_sync(pair, sent)
        until(lambda: pair.found("slave", TOPIC) == sent)
        ask = {"namesrv": pair.namesrv, "topic": TOPIC, "from": "first", "timeout": 120}
        both = len(sent) + 20
        with client.start("consume-concurrently", group="stays", expected=both, **ask) as stays:
            for _ in sent:
                stays.until("message")
            pair.kill("master")
            if client.name != "go":
                late = client.run("consume-concurrently", group="late", expected=len(sent), **ask)
                assert {body.strip() for body in late.bodies} == set(sent)
            pair.start("master")
            after = numbered("after", 20)
            pair.send(TOPIC, after)
            got = {body.strip() for body in stays.finish().bodies}
        assert got == {*sent, *after}
