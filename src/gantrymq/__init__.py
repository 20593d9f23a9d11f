"""RocketMQ's messaging system in Python.

    from gantrymq import Producer, Consumer, Message, Admin

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gantrymq.app import App
    from gantrymq.base.errors import (
        ConfigError,
        GantryError,
        ProtocolError,
        WrongType,
        WrongValue,
    )
    from gantrymq.client.admin import Admin
    from gantrymq.client.checks import Unfinished
    from gantrymq.client.consume_status import ConsumeStatus
    from gantrymq.client.consumer import Consumer
    from gantrymq.client.dead_letters import DeadLetters
    from gantrymq.client.delivery import Delivery
    from gantrymq.client.epochs import Epoch
    from gantrymq.client.errors import (
        BrokerRefused,
        ClientError,
        Closed,
        ForkedError,
        HookFailed,
        MessageRefused,
        NoNameServer,
        NoRoute,
        NotStarted,
        SendFailed,
        WindowFull,
    )
    from gantrymq.client.finding import Finder, Found
    from gantrymq.client.injection import Depends
    from gantrymq.client.lite_pull import LitePullConsumer
    from gantrymq.client.once.ack_first import ack_first
    from gantrymq.client.once.guard import Once
    from gantrymq.client.once.keys import by_keys, by_message_id
    from gantrymq.client.once.postgres_store import PostgresStore
    from gantrymq.client.once.redis_store import RedisStore
    from gantrymq.client.once.sqlite_store import SqliteStore, SqliteTransaction
    from gantrymq.client.options import (
        ClientOptions,
        ConsumerOptions,
        ProducerOptions,
        PullOptions,
    )
    from gantrymq.client.payloads import HandlerRefused
    from gantrymq.client.popping import LoanOver, Popped, PopUnsupported
    from gantrymq.client.producer import Producer
    from gantrymq.client.publishing import Publisher
    from gantrymq.client.pull_consumer import PullConsumer
    from gantrymq.client.readiness import NotReady
    from gantrymq.client.recall import RecallRefused, RecallResult
    from gantrymq.client.received import Received
    from gantrymq.client.request_reply import NotARequest, Reply, RequestTimeout, reply_to
    from gantrymq.client.simple_consumer import SimpleConsumer
    from gantrymq.client.transactions import Decision, HalfNotSafe, Transaction
    from gantrymq.filter import BadSql
    from gantrymq.model import GroupConfig, Message, NameRefused, Queue, SendResult, TopicConfig

__all__ = [
    "Admin",
    "App",
    "BadSql",
    "BrokerRefused",
    "ClientError",
    "ClientOptions",
    "Closed",
    "ConfigError",
    "ConsumeStatus",
    "Consumer",
    "ConsumerOptions",
    "DeadLetters",
    "Decision",
    "Delivery",
    "Depends",
    "Epoch",
    "Finder",
    "ForkedError",
    "Found",
    "GantryError",
    "GroupConfig",
    "HalfNotSafe",
    "HandlerRefused",
    "HookFailed",
    "LitePullConsumer",
    "LoanOver",
    "Message",
    "MessageRefused",
    "NameRefused",
    "NoNameServer",
    "NoRoute",
    "NotARequest",
    "NotReady",
    "NotStarted",
    "Once",
    "PopUnsupported",
    "Popped",
    "PostgresStore",
    "Producer",
    "ProducerOptions",
    "ProtocolError",
    "Publisher",
    "PullConsumer",
    "PullOptions",
    "Queue",
    "RecallRefused",
    "RecallResult",
    "Received",
    "RedisStore",
    "Reply",
    "RequestTimeout",
    "SendFailed",
    "SendResult",
    "SimpleConsumer",
    "SqliteStore",
    "SqliteTransaction",
    "TopicConfig",
    "Transaction",
    "Unfinished",
    "WindowFull",
    "WrongType",
    "WrongValue",
    "ack_first",
    "by_keys",
    "by_message_id",
    "reply_to",
]

_HOMES = {
    "gantrymq.app": ("App",),
    "gantrymq.base.errors": (
        "ConfigError", "GantryError", "ProtocolError", "WrongType", "WrongValue",
    ),
    "gantrymq.client.admin": ("Admin",),
    "gantrymq.client.checks": ("Unfinished",),
    "gantrymq.client.consume_status": ("ConsumeStatus",),
    "gantrymq.client.consumer": ("Consumer",),
    "gantrymq.client.payloads": ("HandlerRefused",),
    "gantrymq.client.readiness": ("NotReady",),
    "gantrymq.client.dead_letters": ("DeadLetters",),
    "gantrymq.client.delivery": ("Delivery",),
    "gantrymq.client.epochs": ("Epoch",),
    "gantrymq.client.errors": (
        "BrokerRefused", "ClientError", "Closed", "ForkedError", "HookFailed", "MessageRefused",
        "NoNameServer", "NoRoute", "NotStarted", "SendFailed", "WindowFull",
    ),
    "gantrymq.client.finding": ("Finder", "Found"),
    "gantrymq.client.lite_pull": ("LitePullConsumer",),
    "gantrymq.client.once.ack_first": ("ack_first",),
    "gantrymq.client.once.guard": ("Once",),
    "gantrymq.client.once.keys": ("by_keys", "by_message_id"),
    "gantrymq.client.once.postgres_store": ("PostgresStore",),
    "gantrymq.client.once.redis_store": ("RedisStore",),
    "gantrymq.client.injection": ("Depends",),
    "gantrymq.client.once.sqlite_store": ("SqliteStore", "SqliteTransaction"),
    "gantrymq.client.options": (
        "ClientOptions", "ConsumerOptions", "ProducerOptions", "PullOptions",
    ),
    "gantrymq.client.popping": ("LoanOver", "PopUnsupported", "Popped"),
    "gantrymq.client.producer": ("Producer",),
    "gantrymq.client.publishing": ("Publisher",),
    "gantrymq.client.pull_consumer": ("PullConsumer",),
    "gantrymq.client.recall": ("RecallRefused", "RecallResult"),
    "gantrymq.client.received": ("Received",),
    "gantrymq.client.simple_consumer": ("SimpleConsumer",),
    "gantrymq.client.request_reply": ("NotARequest", "Reply", "RequestTimeout", "reply_to"),
    "gantrymq.client.transactions": ("Decision", "HalfNotSafe", "Transaction"),
    "gantrymq.filter": ("BadSql",),
    "gantrymq.model": (
        "GroupConfig", "Message", "NameRefused", "Queue", "SendResult", "TopicConfig",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'gantrymq' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
