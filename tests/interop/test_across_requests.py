"""Questions and answers between clients of different kinds."""

import asyncio

import pytest
from clients import Client
from our_client import GO, Scene, story, with_partners

from gantrymq import Delivery
from gantrymq.client.produce.request_reply import RequestTimeout

pytestmark = pytest.mark.timeout(240)


class TestAskingOurs:
    @with_partners
    @story
    async def test_a_foreign_asker_gets_our_answer(self, scene: Scene, partner: Client) -> None:
        """Each reply finds the question it belongs to, and only the client that asked."""
        await scene.create_topic()
        questions: list[str] = []
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)

            @consumer.handler
            async def answer(question: Delivery) -> None:
                questions.append(question.body.decode())
                if partner is GO:
                    # This client announces itself to the broker a moment after its first question.
                    await asyncio.sleep(1)
                await producer.reply(question, f"re: {question.body.decode()}")

            asked = await scene.java(partner, "request", count=3, body="why")

        assert questions == [f"why-{n}" for n in range(3)]
        assert asked.of("late") == []
        assert [line["body"] for line in asked.of("reply")] == [f"re: why-{n}" for n in range(3)]
        assert {line["properties"]["MSG_TYPE"] for line in asked.of("reply")} == {"reply"}

    @with_partners
    @story
    async def test_without_an_answer_a_foreign_asker_is_told(
        self, scene: Scene, partner: Client
    ) -> None:
        """It waits as long as it said, no longer."""
        await scene.create_topic()
        asked = await scene.java(partner, "request", waitMs=1500)

        assert asked.of("reply") == []
        assert [line["index"] for line in asked.of("late")] == [0]


class TestAskingOthers:
    @with_partners
    @story
    async def test_we_get_the_answers_of_a_foreign_client(
        self, scene: Scene, partner: Client
    ) -> None:
        """Questions asked at once are answered each with its own answer."""
        await scene.create_topic()
        async with (
            scene.beside(partner, "respond", expected=4) as responder,
            scene.producer() as producer,
        ):
            await responder.until("ready")
            replies = await asyncio.gather(
                *(producer.request(scene.message(f"why {n}"), timeout=30) for n in range(4))
            )
            seen = await responder.finish()

        assert [reply.body.decode() for reply in replies] == [f"re: why {n}" for n in range(4)]
        assert sorted(seen.bodies) == [f"why {n}" for n in range(4)]
        assert {line["properties"]["TTL"] for line in seen.messages} == {"30000"}

    @story
    async def test_without_an_answer_we_are_told(self, scene: Scene) -> None:
        """The request was sent; the error says so."""
        await scene.create_topic()
        async with scene.producer() as producer:
            with pytest.raises(RequestTimeout, match=r"was sent .* but no reply came in 1\.5 s"):
                await producer.request(scene.message("why"), timeout=1.5)
        assert [message.body for message in await scene.stored(1)] == [b"why"]
