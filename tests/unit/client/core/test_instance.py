"""What clients with one id share: connections, routes, heartbeats."""

import asyncio
import json

import pytest
from scripted import World, play

from gantrymq.client.core.connections import SILENT_CALLS_MAX
from gantrymq.client.core.errors import BrokerRefused, BrokerUnknown, NoRoute
from gantrymq.client.core.instance import Instance, shared_instance
from gantrymq.client.core.options import ClientOptions
from gantrymq.client.core.routes import (
    broker_table,
    from_template,
    publish_queues,
    subscribe_queues,
)
from gantrymq.model import BrokerData, Message, QueueData, Route
from gantrymq.protocol import calls
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.clients import UnregisterClientRequest
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.pending_call import CallTimeout

X = Message("T", "x")


def route(**perms: int) -> Route:
    """A route of two queues on each named broker with its permission."""
    return Route(
        broker_datas=[
            BrokerData(broker_addrs={"0": f"{name}:1"}, broker_name=name) for name in perms
        ],
        queue_datas=[
            QueueData(broker_name=name, perm=perm, read_queue_nums=2, write_queue_nums=2)
            for name, perm in perms.items()
        ],
    )


def test_queues_are_those_whose_permission_allows_it_sorted_by_broker() -> None:
    """
    Queues to write and to read are those whose permission allows it, sorted by broker.
    """
    known = route(c=6, b=2, a=4)

    assert [str(queue) for queue in publish_queues(known, "T")] == [
        "T@b:0",
        "T@b:1",
        "T@c:0",
        "T@c:1",
    ]
    assert [str(queue) for queue in subscribe_queues(known, "T")] == [
        "T@a:0",
        "T@a:1",
        "T@c:0",
        "T@c:1",
    ]


def test_a_broker_without_a_master_takes_no_messages() -> None:
    """
    A broker without a master has queues to read, but none to write.
    """
    known = route(a=6, b=6)
    known.broker_datas[0].broker_addrs = {"1": "a-slave:1"}

    assert {queue.broker_name for queue in publish_queues(known, "T")} == {"b"}
    assert {queue.broker_name for queue in subscribe_queues(known, "T")} == {"a", "b"}


def test_a_topic_to_be_made_gets_the_smaller_number_of_queues() -> None:
    """
    A topic that does not exist yet gets the template's queues or the wanted number, whichever
    is less.
    """
    template = route(a=7, b=6)
    template.queue_datas[0].write_queue_nums = 8

    made = from_template(template, 4)

    assert [(d.broker_name, d.write_queue_nums) for d in made.queue_datas] == [("a", 4)]


def test_the_newest_word_on_a_brokers_addresses_wins() -> None:
    """
    A later route replaces the addresses of a broker.
    """
    later = route(a=6)
    later.broker_datas[0].broker_addrs = {"0": "moved:1", "1": "slave:1"}

    assert broker_table([route(a=6, b=6), later]) == {
        "a": {0: "moved:1", 1: "slave:1"},
        "b": {0: "b:1"},
    }


def test_clients_of_one_process_share_one_instance() -> None:
    """
    Clients with the same options share one instance; others get their own.
    """

    async def story(world: World) -> None:
        options = ClientOptions(namesrv=world.namesrv)
        first = shared_instance(options, network=world.network)
        assert shared_instance(options, network=world.network) is first
        other = ClientOptions(namesrv=world.namesrv, instance_name="other")
        assert shared_instance(other, network=world.network) is not first
        assert shared_instance(ClientOptions(namesrv="x:1"), network=world.network) is not first
        assert shared_instance(options) is not first

    play(story)


def test_a_second_member_of_a_group_gets_a_client_id_of_its_own() -> None:
    """
    A second consumer of the same group in a process gets an instance with another client id.
    """

    async def story(world: World) -> None:
        options = ClientOptions(namesrv=world.namesrv)

        def make(group: str) -> Instance:
            return shared_instance(options, network=world.network, consumer_group=group)

        first, second, other = make("g"), make("g"), make("h")
        assert other is first
        assert first.client_id != second.client_id

    play(story)


def test_the_client_id_is_address_and_instance_name() -> None:
    """
    The client id is the address, an @ and the instance name.
    """

    async def story(world: World) -> None:
        options = ClientOptions(namesrv=world.namesrv, client_ip="10.1.2.3", instance_name="me")
        assert shared_instance(options).client_id == "10.1.2.3@me"

    play(story)


def test_the_last_user_closes_the_shared_connections() -> None:
    """
    An instance closes its connections when its last user has closed.
    """

    async def story(world: World) -> None:
        one, two = world.producer(), world.producer()
        two._ports = one._ports
        async with one:
            await two.start()
            assert two.instance is one.instance
            instance = one.instance
            await one.send(X)
            await two.close()
            assert (await one.send(X)).status == "SEND_OK"
        assert not instance.is_open
        assert instance.connections.addresses == []

    play(story)


def test_callers_that_need_the_same_connection_wait_for_one_connect() -> None:
    """
    Simultaneous callers for one address share a single connection attempt.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            get = producer.instance.connections.get
            found = await asyncio.gather(*(get(world.brokers[0].address) for _ in range(20)))
            assert len({id(connection) for connection in found}) == 1

    play(story)


def test_routes_are_asked_for_once_and_again_every_30_seconds() -> None:
    """
    A route is asked for once by many callers, and again every 30 seconds.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            routes = producer.instance.routes
            await asyncio.gather(*(routes.get("T") for _ in range(10)))
            await routes.get("T")
            assert world.asked == ["T"]
            await asyncio.sleep(61)
            assert world.asked == ["T", "T", "T"]

    play(story)


def test_a_route_that_vanishes_stays_in_use_until_there_is_a_new_one() -> None:
    """
    A route that the name server no longer knows stays in use.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            await producer.send(X)
            del world.topics["T"]
            await asyncio.sleep(31)
            assert (await producer.send(X)).status == "SEND_OK"
            with pytest.raises(NoRoute):
                await producer.instance.routes.get("unknown")

    play(story)


def test_a_broker_that_left_every_route_is_forgotten() -> None:
    """
    A broker that is in no route any more is forgotten, and its connection closed.
    """

    async def story(world: World) -> None:
        gone = world.brokers[0].address
        async with world.producer() as producer:
            for _ in range(12):
                await producer.send(X)
            instance = producer.instance
            assert gone in instance.connections.addresses
            world.topics["T"] = world.route("b", "c")
            await asyncio.sleep(31)
            with pytest.raises(BrokerUnknown):
                instance.routes.address_of("a")
            await asyncio.sleep(90)
            assert gone not in instance.connections.addresses
            before = len(world.brokers[0].heartbeats)
            await asyncio.sleep(60)
            assert len(world.brokers[0].heartbeats) == before

    play(story)


def test_producers_beat_to_masters_at_once_and_every_30_seconds() -> None:
    """
    A producer sends a heartbeat to masters at its first send and every 30 seconds after.
    """

    async def story(world: World) -> None:
        broker = world.brokers[0]
        async with world.producer() as producer:
            await producer.send(X)
            await asyncio.sleep(1)
            assert len(broker.heartbeats) == 1
            await asyncio.sleep(60)
            assert len(broker.heartbeats) == 3
            beat = json.loads(broker.heartbeats[0])
            assert beat["clientID"] == producer.instance.client_id
            assert beat["producerDataSet"] == [{"groupName": "g"}]
        assert broker.unregistered == [{"clientID": beat["clientID"], "producerGroup": "g"}]

    play(story)


def test_a_broker_is_told_again_after_the_connection_was_lost() -> None:
    """
    After a lost connection the next send is followed by a heartbeat at once.
    """

    async def story(world: World) -> None:
        broker = world.brokers[0]
        async with world.producer() as producer:
            queue = (await producer.queues("T"))[0]
            await producer.send(X, queue=queue)
            await asyncio.sleep(1)
            world.network.cut_port(int(broker.address.split(":")[1]))
            await asyncio.sleep(1)
            assert len(broker.heartbeats) == 1
            await producer.send(X, queue=queue)
            await asyncio.sleep(1)
            assert len(broker.heartbeats) == 2

    play(story, brokers=1)


def test_a_second_producer_is_announced_at_once() -> None:
    """
    A second producer group of an instance is in a heartbeat at once.
    """

    async def story(world: World) -> None:
        async with world.producer() as one:
            await one.send(X)
            await asyncio.sleep(1)
            one.instance.register_producer("second")
            await asyncio.sleep(1)
            groups = json.loads(world.brokers[0].heartbeats[-1])["producerDataSet"]
            assert groups == [{"groupName": "g"}, {"groupName": "second"}]

    play(story)


def test_consumers_are_told_of_to_slaves_as_well() -> None:
    """
    Heartbeats go to slaves as well when the instance has a consumer.
    """

    async def story(world: World) -> None:
        known = world.route("a")
        known.broker_datas[0].broker_addrs["1"] = world.brokers[1].address
        world.topics["T"] = known
        async with world.producer() as producer:
            instance = producer.instance
            await instance.routes.get("T")
            await asyncio.sleep(1)
            assert (len(world.brokers[0].heartbeats), len(world.brokers[1].heartbeats)) == (1, 0)
            instance.register_consumer("cg", lambda: ConsumerData(group_name="cg"))
            await instance.heartbeat_now()
            beat = json.loads(world.brokers[1].heartbeats[-1])
            groups = {data["groupName"] for data in beat["producerDataSet"]}
            assert groups == {"g", "CLIENT_INNER_PRODUCER"}
            assert beat["consumerDataSet"][0]["groupName"] == "cg"
            await instance.unregister_consumer("cg")
            assert world.brokers[1].unregistered[-1]["consumerGroup"] == "cg"

    play(story)


def test_an_answer_that_was_not_expected_raises_with_code_and_remark() -> None:
    """
    An unexpected response code raises BrokerRefused with code and remark.
    """

    async def story(world: World) -> None:
        async with world.producer() as producer:
            with pytest.raises(BrokerRefused, match=r"code 3:.*not supported") as caught:
                await producer.instance.call(
                    world.brokers[0].address, calls.GET_BROKER_RUNTIME_INFO, Nothing()
                )
            assert caught.value.code == 3
            _, answer = await producer.instance.call(
                world.brokers[0].address, calls.GET_BROKER_RUNTIME_INFO, Nothing(), expect=(0, 3)
            )
            assert answer.code == 3

    play(story)


def test_a_peer_that_stopped_answering_is_connected_to_anew() -> None:
    """
    After several calls without an answer the connection is replaced by a new one.
    """

    async def story(world: World) -> None:
        address = world.brokers[0].address
        header = UnregisterClientRequest(client_id="c")
        async with world.producer() as producer:
            instance = producer.instance
            first = await instance.connections.get(address)
            world.network.part("127.0.0.1", "127.0.0.1")
            for _ in range(SILENT_CALLS_MAX):
                with pytest.raises(CallTimeout):
                    await instance.call(address, calls.UNREGISTER_CLIENT, header, timeout=1.0)
            world.network.join("127.0.0.1", "127.0.0.1")
            await instance.call(address, calls.UNREGISTER_CLIENT, header)
            assert await instance.connections.get(address) is not first

    play(story)


def test_a_request_of_the_broker_is_answered_by_the_first_who_can() -> None:
    """
    A broker's request is passed from handler to handler until one answers; a failing one is
    passed over.
    """

    async def story(world: World) -> None:
        asked: list[int] = []

        async def passes(connection: Connection, command: Command) -> Command | None:
            asked.append(command.code)
            return None

        async def answers(connection: Connection, command: Command) -> Command | None:
            return Command(code=0, body=b"here")

        async def breaks(connection: Connection, command: Command) -> Command | None:
            raise RuntimeError("broken")

        async with world.producer() as producer:
            await producer.send(X)
            instance = producer.instance
            instance.on_request(307, passes)
            remove = instance.on_request(307, answers)
            peer = world.connections_of(instance)[0]
            assert (await peer.call(Command(code=307), 5.0)).body == b"here"
            remove()
            assert (await peer.call(Command(code=307), 5.0)).code == 1
            instance.on_request(307, breaks)
            assert "broken" in ((await peer.call(Command(code=307), 5.0)).remark or "")
            assert (await peer.call(Command(code=309), 5.0)).code == 3
            assert asked == [307] * 3

    play(story)


def test_a_handler_may_close_its_own_client() -> None:
    """
    A handler of broker requests may close its own client.
    """

    async def story(world: World) -> None:
        producer = world.producer()
        await producer.start()
        await producer.send(X)
        closed = asyncio.Event()

        async def close(connection: Connection, command: Command) -> Command | None:
            await producer.close()
            closed.set()
            return None

        producer.instance.on_request(40, close)
        world.connections_of(producer.instance)[0].oneway(Command(code=40))
        assert await asyncio.wait_for(closed.wait(), 10)

    play(story)
