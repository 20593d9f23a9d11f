"""Sessions, locks, settings: the broker's pure parts."""

from typing import Any, cast

import pytest

from gantrymq.base.config import WrittenSettings, format_properties, parse_properties
from gantrymq.base.errors import ConfigError
from gantrymq.broker.locks import QueueLockTable
from gantrymq.broker.settings.config import broker_config, parse_delay_levels
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.sessions import Client, Sessions
from gantrymq.model import Queue
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.protocol.subscription import subscription
from gantrymq.store.writing.write_counts import WriteCounts

ONE, TWO = Queue("T", "b", 0), Queue("T", "b", 1)


def connection(name: str) -> Any:
    """A stand-in for a connection: sessions only ask whether two are the same."""
    return cast(Any, name)


def consumer(*topics: str, version: int = 0) -> ConsumerData:
    wanted = [subscription(topic, "*", version=version) for topic in topics]
    return ConsumerData(group_name="g", subscription_data_set=wanted)


def client(name: str = "c", heard: float = 0.0) -> Client:
    return Client(name, "JAVA", 409, heard)


class TestSessions:
    def test_a_new_member_and_a_new_topic_are_changes(self) -> None:
        """
        The others are told of both.
        """
        sessions = Sessions()

        assert sessions.hear_consumer(consumer("T"), connection("one"), client())
        assert not sessions.hear_consumer(consumer("T"), connection("one"), client())
        assert sessions.hear_consumer(consumer("T", "U"), connection("one"), client())
        assert sessions.hear_consumer(consumer("T"), connection("one"), client())

    def test_a_newer_version_alone_is_no_change(self) -> None:
        """
        Clients raise it after every rebalance: telling the others would never end.
        """
        sessions = Sessions()
        sessions.hear_consumer(consumer("T"), connection("one"), client())

        assert not sessions.hear_consumer(consumer("T", version=5), connection("one"), client())
        assert sessions.consumers["g"].subscriptions["T"].sub_version == 5

    def test_a_closed_connection_leaves_everything(self) -> None:
        """
        And says which groups must be told.
        """
        sessions = Sessions()
        sessions.hear_consumer(consumer("T"), connection("one"), client())
        sessions.hear_producer("p", connection("one"), client())

        assert sessions.drop(connection("one")) == ["g"]
        assert (sessions.consumers, sessions.producers) == ({}, {})

    def test_the_silent_are_found(self) -> None:
        """
        A connection without a heartbeat for more than 120 seconds is silent.
        """
        sessions = Sessions()
        sessions.hear_consumer(consumer("T"), connection("old"), client(heard=0.0))
        sessions.hear_consumer(consumer("T"), connection("new"), client("d", heard=100.0))

        assert sessions.silent(121.0) == ["old"]


class TestLocks:
    def test_one_owner_a_queue(self) -> None:
        """
        The owner renews; another gets only what is free.
        """
        locks = QueueLockTable()

        assert locks.lock("g", [ONE], "a", 0.0) == [ONE]
        assert locks.lock("g", [ONE, TWO], "b", 1.0) == [TWO]
        assert locks.lock("g", [ONE], "a", 50.0) == [ONE]

    def test_a_lease_runs_out(self) -> None:
        """
        60 s after it was last renewed.
        """
        locks = QueueLockTable()
        locks.lock("g", [ONE], "a", 0.0)

        assert locks.lock("g", [ONE], "b", 60.0) == []
        assert locks.lock("g", [ONE], "b", 60.1) == [ONE]

    def test_only_the_owner_unlocks(self) -> None:
        """
        A late unlock must not free the queue of its new owner.
        """
        locks = QueueLockTable()
        locks.lock("g", [ONE], "a", 0.0)
        locks.unlock("g", [ONE], "b")
        assert locks.lock("g", [ONE], "b", 1.0) == []
        locks.unlock("g", [ONE], "a")

        assert locks.lock("g", [ONE], "b", 1.0) == [ONE]


class TestSettings:
    def test_rocketmqs_file_is_taken_as_it_is(self) -> None:
        """
        Known keys are honoured, keys without a meaning here are accepted.
        """
        config = broker_config(
            WrittenSettings.in_text(
                "brokerName = b\nfileReservedTime=48\n# x\ntransferMsgByHeap=true\n", "b.conf"
            )
        )

        assert (config.broker_name, config.store.retention_hours) == ("b", 48)

    def test_a_misspelt_key_stops_the_start_and_names_the_nearest(self) -> None:
        """
        RocketMQ would have ignored it.
        """
        with pytest.raises(ConfigError, match="flushDiskTpye; did you mean flushDiskType"):
            broker_config(WrittenSettings({"flushDiskTpye": "SYNC_FLUSH"}))

    @pytest.mark.parametrize(
        "key, value",
        [
            ("listenPort", "x"),
            ("listenPort", "70000"),
            ("flushDiskType", "NEVER"),
            ("messageDelayLevel", "1s 5x"),
            ("authorizationEnabled", "true"),
            ("brokerRole", "SLAVE"),
        ],
    )
    def test_a_value_that_cannot_be_kept_stops_the_start(self, key: str, value: str) -> None:
        """
        The error names the key or what is wrong with it.
        """
        with pytest.raises(ConfigError):
            broker_config(WrittenSettings({key: value}))

    def test_delay_levels_have_units(self) -> None:
        """
        Delay levels are read in seconds, minutes, hours and days.
        """
        assert parse_delay_levels("1s 2m 1h 1d") == (1000, 120_000, 3_600_000, 86_400_000)

    def test_properties_follow_javas_rules(self) -> None:
        """
        Separators, comments, continuations and escapes.
        """
        text = "a=1\n b : 2\n#c=3\n!d=4\ne=x\\\n  y\nf\\ g=h\nu=\\u0041\nempty=\n"
        expected = {"a": "1", "b": "2", "e": "xy", "f g": "h", "u": "A", "empty": ""}

        assert expected == parse_properties(text)
        assert parse_properties(format_properties({"k": "v"})) == {"k": "v"}


class TestStats:
    def test_rates_are_differences_over_time(self) -> None:
        """
        10 messages in 10 s are one a second.
        """
        written = WriteCounts()
        stats = BrokerStats(0, written)
        stats.sample(0.0)
        written.count += 10
        stats.sample(10.0)

        assert stats.rates(1) == "1.0 1.0 1.0"
