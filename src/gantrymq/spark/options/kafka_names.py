"""Options and columns of Spark's Kafka source, and what they are called here. Pure."""

from typing import Final

KAFKA_COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""With `schema=kafka`: the columns of Spark's Kafka source, in its order and its types."""
LOG_APPEND_TIME: Final = 1
"""Kafka's word for a timestamp that the broker gave: here it is when a message was stored."""

_OURS: Final = {
    "bootstrap.servers": "nameServer, the host:port of name servers (not of brokers)",
    "kafka.bootstrap.servers": "nameServer, the host:port of name servers (not of brokers)",
    "group.id": "group",
    "kafka.group.id": "group",
    "groupidprefix": "group",
    "kafkaconsumer.polltimeoutms": "pullTimeout, such as 10s",
    "fetchoffset.numretries": "patience, such as 2m",
    "fetchoffset.retryintervalms": "patience, such as 2m",
    "partition": "the column queueId; the option queues chooses some, such as 0,2",
    "partitions": "the option queues, such as 0,2",
    "key": "the column keys; the option keyFilter chooses messages by it",
    "value": "the column body",
    "offset": "the column queueOffset",
    "timestamp": "the column storeTimestamp",
    "timestamptype": "not here: storeTimestamp is the broker's time, bornTimestamp the producer's",
    "headers": "the column properties",
}
"""Kafka's names, in small letters, and what to write instead."""


def in_our_words(name: str) -> str:
    """` is Kafka's: here it is ...` for a name of Kafka's source, else an empty text."""
    ours = _OURS.get(name.lower())
    if ours is None and name.lower().startswith("kafka."):
        return " is Kafka's: clients of RocketMQ have no such setting, leave it out"
    return f" is Kafka's: here it is {ours}" if ours else ""
