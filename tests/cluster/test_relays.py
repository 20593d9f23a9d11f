"""Questions of operators that the broker passes on to a consumer."""

import asyncio

import pytest
from peer import Peer, Run

from gantrymq import Delivery, Message
from gantrymq.protocol import fastjson
from gantrymq.remoting.pending_call import CallTimeout
from gantrymq.testing.cluster import Cluster


class TestConsumeDirectly:
    def test_one_consumer_handles_one_stored_message_and_tells_how_it_went(self, run: Run) -> None:
        """
        The handler runs on the message again; nobody's progress moves.
        """

        async def work(cluster: Cluster) -> None:
            got: list[bytes] = []
            seen = asyncio.Event()
            async with cluster.producer() as producer, cluster.consumer("g") as consumer:

                @consumer.handler
                async def take(message: Delivery) -> None:
                    got.append(message.body)
                    seen.set()
                    if len(got) > 1:
                        raise ValueError("not again")

                consumer.subscribe("orders")
                sent = await producer.send(Message("orders", b"one"))
                await consumer.wait_assigned()
                await seen.wait()
                peer = await Peer.to(cluster)
                answer = await peer.call(
                    309, consumerGroup="g", clientId=consumer.instance.client_id,
                    msgId=sent.offset_msg_id,
                )  # fmt: skip

            assert 0 == answer.code
            assert "CR_LATER" == fastjson.loads(answer.body)["consumeResult"]
            assert [b"one", b"one"] == got

        run(work)

    def test_a_client_that_came_back_is_asked_on_its_new_connection(self, run: Run) -> None:
        """
        The same client id over two connections: the one that was heard of last is alive.
        """

        async def work(cluster: Cluster) -> None:
            old, new, asker = [await Peer.to(cluster) for _ in range(3)]
            await cluster.create_topic("orders", queues=1)
            for peer in (old, new):
                await peer.heartbeat("client-1", "g", "orders")

            with pytest.raises(CallTimeout):
                await asker.call(307, timeout=0.5, consumerGroup="g", clientId="client-1")

            assert [307] == [command.code for command in new.pushed if command.code == 307]
            assert 307 not in [command.code for command in old.pushed]

        run(work)

    def test_a_message_that_is_not_there_is_said_to_be_missing(self, run: Run) -> None:
        """
        The consumer is not bothered.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            answer = await peer.call(
                309, consumerGroup="g", clientId="c", msgId="7F00000100002A9F0000000000FFFFFF"
            )

            assert 1 == answer.code
            assert "no message" in (answer.remark or "")

        run(work)


class TestRunningInfo:
    def test_a_consumer_describes_itself(self, run: Run) -> None:
        """
        Its queues and settings come back through the broker.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=2)
            async with cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                await consumer.wait_assigned(2)
                peer = await Peer.to(cluster)
                answer = await peer.call(
                    307, consumerGroup="g", clientId=consumer.instance.client_id
                )
            info = fastjson.loads(answer.body)

            assert 0 == answer.code
            assert "orders" in {row["topic"] for row in info["subscriptionSet"]}

        run(work)

    def test_a_consumer_that_is_not_online_is_an_error(self, run: Run) -> None:
        """
        Nobody waits for an answer that cannot come.
        """

        async def work(cluster: Cluster) -> None:
            answer = await (await Peer.to(cluster)).call(307, consumerGroup="g", clientId="c@1")

            assert 1 == answer.code
            assert "not online" in (answer.remark or "")

        run(work)

    def test_a_consumer_that_is_silent_is_a_time_out(self) -> None:
        """
        A member that never answers costs 10 s, not for ever; on virtual time, nothing.
        """
        from gantrymq.testing.loop import simulate

        async def story() -> int:
            async with Cluster(memory=True) as cluster:
                mute = await Peer.to(cluster)
                await mute.heartbeat("mute@1", "g", "orders")
                answer = await (await Peer.to(cluster)).call(
                    307, consumerGroup="g", clientId="mute@1"
                )
                return answer.code

        assert 207 == simulate(story)
