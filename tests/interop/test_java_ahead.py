"""What Java's clients do that our broker refuses by name today.

Collected only when the suite runs against RocketMQ itself: there it keeps the programs proven.
"""

import pytest
from clients import JAVA_CLIENTS, JavaClient

pytestmark = [
    pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr),
    pytest.mark.timeout(240),
]


class TestTransactions:
    def test_only_committed_messages_are_delivered(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Committed messages arrive, rolled back ones never, undecided ones after a check back.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        with java.start(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            expected=4,
            lingerMs=2000,
            timeout=90,
        ) as consumer:
            consumer.until("ready")
            lines = java.run("send-transaction", namesrv=namesrv, topic=topic, count=6, timeout=90)
            got = consumer.finish()

        assert {line["body"] for line in lines.of("checked")} >= {"body-2", "body-5"}
        assert set(got.bodies) == {"body-0", "body-2", "body-3", "body-5"}


class TestFiltering:
    def test_sql_filters_by_properties(
        self, java: JavaClient, namesrv: str, topic: str, group: str
    ) -> None:
        """
        An SQL92 expression over properties is evaluated on the broker.
        """
        java.run("create-topic", namesrv=namesrv, topic=topic, queues=1)
        for size in ("3", "30"):
            java.run(
                "send-sync", namesrv=namesrv, topic=topic, body=size, properties={"size": size}
            )
        got = java.run(
            "consume-concurrently",
            namesrv=namesrv,
            topic=topic,
            group=group,
            sql="size > 10 AND size IS NOT NULL",
            lingerMs=1000,
        )

        assert got.bodies == ["30-0"]
