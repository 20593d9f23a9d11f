"""Subscriptions by condition and by tag, across clients and servers."""

import pytest
from clients import JAVA_CLIENTS, Client
from clusters import OURS
from our_client import (
    GO,
    NODE,
    OLD_JAVA,
    Scene,
    at_home,
    nothing_more,
    read_queue,
    story,
    take_and_ack,
    texts,
    with_partners,
)
from process import ProcessFailed

pytestmark = pytest.mark.timeout(240)

# One message a row: its body is its number.
ROWS: list[dict[str, str]] = [
    {},
    {"a": "1"},
    {"a": "2", "b": "two"},
    {"a": "2.5", "b": "two"},
    {"a": "-3", "b": "TWO"},
    {"a": "ten", "b": "10"},
    {"a": "10", "flag": "true"},
    {"a": "100", "flag": "false", "b": "hundred"},
    {"flag": "TRUE"},
    {"TAG_LIKE": "x", "a": "1e2"},
]
# What RocketMQ's brokers choose, by the numbers of the rows.
CHOSEN: dict[str, list[int]] = {
    "a IS NULL": [0, 8],
    "a IS NOT NULL": [1, 2, 3, 4, 5, 6, 7, 9],
    "a = 2": [2],
    "a = '2'": [2],
    "a <> 2": [1, 4, 6, 7],
    "a > 1": [2, 6, 7],
    "a >= 2.5": [3, 6, 7, 9],
    "a < 0": [4],
    "a = -3": [4],
    "a BETWEEN 1 AND 2.5": [1, 2],
    "a NOT BETWEEN 1 AND 2.5": [4, 6, 7],
    "a IN ('2', '10')": [2, 6],
    "a NOT IN ('2', '10')": [1, 3, 4, 5, 7, 9],
    "b = 'two'": [2, 3],
    "b <> 'two'": [4, 5, 7],
    "b IN ('two', 'TWO')": [2, 3, 4],
    "b NOT IN ('two')": [4, 5, 7],
    "b = ''": [],
    "flag = TRUE": [6, 8],
    "flag = FALSE": [7],
    "flag <> TRUE": [7],
    "flag = 'true'": [6],
    "NOT (flag = TRUE)": [7],
    "a > 1 AND b = 'two'": [2],
    "a > 1 OR b = 'two'": [2, 6, 7],
    "a > 1 AND nobody = 3": [],
    "a > 1 OR nobody = 3": [2, 6, 7],
    "NOT nobody = 3": [],
    "nobody IS NULL AND a = 1": [1],
    "a > 1 and b is not null": [2, 7],
    "TRUE": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "FALSE": [],
    "a": [],
    "flag": [],
    "1 = 1": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "a = 1e2": [7, 9],
    "a = 100L": [7],
    "a > -5 AND a < 5": [1, 2, 4],
    "a = 1 OR a = 2 AND b = 'two'": [1, 2],
    "(a = 1 OR a = 2) AND b = 'two'": [2],
    "a /* comment */ = 1": [1],
    "a = 1 -- rest": [1],
    "2 < a": [6, 7],
    "'two' = b": [2, 3],
    "a = b": [0, 8],
    "a > 1 = TRUE": [2, 6, 7],
    "a > b": [],
    "b > 1": [5],
    "flag > 1": [],
    "TRUE AND a = 1": [1],
    "a = +1": [1],
    "TAGS = 'x'": [],
    "TAGS IS NULL": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "KEYS IS NULL": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "a IN ('2')": [2],
}
CHOSEN_BY_5: dict[str, list[int]] = {
    "b CONTAINS 'un'": [7],
    "b NOT CONTAINS 'un'": [2, 3, 4, 5],
    "b STARTSWITH 'tw'": [2, 3],
    "b NOT STARTSWITH 'tw'": [4, 5, 7],
    "b ENDSWITH 'o'": [2, 3],
    "b NOT ENDSWITH 'o'": [4, 5, 7],
    "a CONTAINS '0'": [6, 7],
}


class TestConditions:
    @pytest.mark.parametrize("foreign", [*JAVA_CLIENTS, GO], ids=repr)
    @at_home
    @story
    async def test_foreign_consumers_get_what_they_chose(
        self, scene: Scene, foreign: Client
    ) -> None:
        """The broker checks the condition against the properties of our messages."""
        await scene.create_topic()
        await scene.send(
            *(scene.message(f"m-{n}", properties={"n": f"{n}", "colour": "red"}) for n in range(9)),
            scene.message("bare"),
        )
        got = await scene.java(
            foreign,
            "consume-concurrently",
            sql="colour = 'red' AND (n BETWEEN 2 AND 3 OR n IN ('7', '8'))",
            expected=4,
            lingerMs=1000,
        )

        assert sorted(got.bodies) == ["m-2", "m-3", "m-7", "m-8"]

    @with_partners
    @story
    async def test_our_consumer_chooses_among_foreign_messages(
        self, scene: Scene, partner: Client
    ) -> None:
        """Also those that come while the consumer is waiting."""
        await scene.create_topic()
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic, sql="n >= 3 AND n < 6 AND n IS NOT NULL")
            await scene.java(partner, "send-sync", count=8, numbered=True, body="early")
            early = await take_and_ack(consumer, 3)
            await scene.java(partner, "send-sync", count=8, numbered=True, body="late")
            late = await take_and_ack(consumer, 3)
            assert await nothing_more(consumer)

        assert sorted(texts(early)) == ["early-3", "early-4", "early-5"]
        assert sorted(texts(late)) == ["late-3", "late-4", "late-5"]

    @pytest.mark.parametrize(
        "where, chosen",
        [
            pytest.param(where, chosen, id=where)
            for where, chosen in [
                (OURS, {**CHOSEN, **CHOSEN_BY_5}),
                ("4.9.7", CHOSEN),
                ("5.3.3", {**CHOSEN, **CHOSEN_BY_5}),
            ]
        ],
    )
    @story
    async def test_a_condition_means_the_same_everywhere(
        self, scene: Scene, chosen: dict[str, list[int]]
    ) -> None:
        """Numbers, words, missing properties and three-valued logic, read by pulling."""
        await scene.create_topic(queues=1)
        await scene.send(*(scene.message(f"{n}", properties=row) for n, row in enumerate(ROWS)))
        await scene.stored(len(ROWS))
        found: dict[str, list[int]] = {}
        async with scene.reader() as reader:
            for sql in chosen:
                messages = await read_queue(reader, scene.queue(0), sql=sql)
                found[sql] = [int(text) for text in texts(messages)]

        assert found == chosen

    @pytest.mark.parametrize("foreign", JAVA_CLIENTS, ids=repr)
    @at_home
    def test_a_condition_that_cannot_be_read_is_refused(
        self, scene: Scene, foreign: Client
    ) -> None:
        """A Java consumer does not start with it; the broker said what is wrong."""
        OLD_JAVA.run("create-topic", namesrv=scene.namesrv, topic=scene.topic, queues=1)
        arguments = {"namesrv": scene.namesrv, "topic": scene.topic, "group": scene.group}
        with (
            foreign.start("consume-concurrently", **arguments, sql="a >") as consumer,
            pytest.raises(ProcessFailed, match="CODE: 23"),
        ):
            consumer.finish()


class TestTags:
    @pytest.mark.parametrize("foreign", [*JAVA_CLIENTS, GO, NODE], ids=repr)
    @at_home
    @story
    async def test_foreign_consumers_get_our_messages_of_their_tags(
        self, scene: Scene, foreign: Client
    ) -> None:
        """Tags as Java hashes them, beyond ASCII too; Go hashes those in a way of its own."""
        await scene.create_topic()
        tags = ["a", "blue", "red", "b"] if foreign is GO else ["a", "grün", "值", "b"]
        await scene.send(*(scene.message(f"m-{n}", tags[n % 4]) for n in range(12)))
        got = await scene.java(
            foreign,
            "consume-concurrently",
            expression=f"{tags[1]} || {tags[2]}",
            expected=6,
            lingerMs=1000,
        )

        assert sorted(got.bodies) == ["m-1", "m-10", "m-2", "m-5", "m-6", "m-9"]

    @pytest.mark.parametrize("foreign", [*JAVA_CLIENTS, GO, NODE], ids=repr)
    @at_home
    @story
    async def test_our_consumer_gets_foreign_messages_of_its_tags(
        self, scene: Scene, foreign: Client
    ) -> None:
        """Our consumer gets those messages of a Java producer that have one of its tags."""
        await scene.create_topic()
        await scene.java(foreign, "send-sync", count=12, tags=["a", "grün", "值", "b"])
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic, tags="grün || 值")
            got = await take_and_ack(consumer, 6)
            assert await nothing_more(consumer)

        assert {message.tags for message in got} == {"grün", "值"}
