"""RocketMQ's messaging system in Python.

    from gantrymq import Producer, Consumer, Message, Admin

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.access.credentials import Credentials
    from gantrymq.app.app import App
    from gantrymq.app.injection import Depends
    from gantrymq.base.errors import (
        ConfigError,
        GantryError,
        ProtocolError,
        WrongType,
        WrongValue,
    )
    from gantrymq.client.admin.admin import Admin
    from gantrymq.client.admin.letters.dead_letters import DeadLetters
    from gantrymq.client.admin.messages.message_search import Finder, Found
    from gantrymq.client.consume.membership.readiness import NotReady
    from gantrymq.client.consume.pop.pop_requests import LoanOver, Popped, PopUnsupported
    from gantrymq.client.consume.pop.simple_consumer import SimpleConsumer
    from gantrymq.client.consume.pull.lite_pull_consumer import LitePullConsumer
    from gantrymq.client.consume.pull.pull_consumer import PullConsumer
    from gantrymq.client.consume.push.ack_first import ack_first
    from gantrymq.client.consume.push.consumer import Consumer
    from gantrymq.client.core.consumer_errors import HandlerRefused
    from gantrymq.client.core.errors import (
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
        SendsFailed,
        WindowFull,
    )
    from gantrymq.client.core.options import (
        ClientOptions,
        ConsumerOptions,
        ProducerOptions,
        PullOptions,
    )
    from gantrymq.client.core.requests import Reply
    from gantrymq.client.messages.consume_status import ConsumeStatus
    from gantrymq.client.messages.delivery import Delivery
    from gantrymq.client.messages.received import Received
    from gantrymq.client.once.guard import Once
    from gantrymq.client.once.keys import by_keys, by_message_id
    from gantrymq.client.once.postgres_store import PostgresStore
    from gantrymq.client.once.redis_store import RedisStore
    from gantrymq.client.once.sqlite_store import SqliteStore, SqliteTransaction
    from gantrymq.client.produce.check_back import Unfinished
    from gantrymq.client.produce.epochs import Epoch
    from gantrymq.client.produce.producer import Producer
    from gantrymq.client.produce.publishing import Publisher
    from gantrymq.client.produce.recall import RecallRefused, RecallResult
    from gantrymq.client.produce.request_reply import NotARequest, RequestTimeout, reply_to
    from gantrymq.client.produce.send_results import SendResults
    from gantrymq.client.produce.transactions import Decision, HalfNotSafe, Transaction
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
    "Credentials",
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
    "SendResults",
    "SendsFailed",
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
    "gantrymq.access.credentials": ("Credentials",),
    "gantrymq.app.app": ("App",),
    "gantrymq.base.errors": (
        "ConfigError", "GantryError", "ProtocolError", "WrongType", "WrongValue",
    ),
    "gantrymq.client.admin.admin": ("Admin",),
    "gantrymq.client.produce.check_back": ("Unfinished",),
    "gantrymq.client.messages.consume_status": ("ConsumeStatus",),
    "gantrymq.client.consume.push.consumer": ("Consumer",),
    "gantrymq.client.core.consumer_errors": ("HandlerRefused",),
    "gantrymq.client.consume.membership.readiness": ("NotReady",),
    "gantrymq.client.admin.letters.dead_letters": ("DeadLetters",),
    "gantrymq.client.messages.delivery": ("Delivery",),
    "gantrymq.client.produce.epochs": ("Epoch",),
    "gantrymq.client.core.errors": (
        "BrokerRefused", "ClientError", "Closed", "ForkedError", "HookFailed", "MessageRefused",
        "NoNameServer", "NoRoute", "NotStarted", "SendFailed", "SendsFailed", "WindowFull",
    ),
    "gantrymq.client.admin.messages.message_search": ("Finder", "Found"),
    "gantrymq.client.consume.pull.lite_pull_consumer": ("LitePullConsumer",),
    "gantrymq.client.consume.push.ack_first": ("ack_first",),
    "gantrymq.client.once.guard": ("Once",),
    "gantrymq.client.once.keys": ("by_keys", "by_message_id"),
    "gantrymq.client.once.postgres_store": ("PostgresStore",),
    "gantrymq.client.once.redis_store": ("RedisStore",),
    "gantrymq.app.injection": ("Depends",),
    "gantrymq.client.once.sqlite_store": ("SqliteStore", "SqliteTransaction"),
    "gantrymq.client.core.options": (
        "ClientOptions", "ConsumerOptions", "ProducerOptions", "PullOptions",
    ),
    "gantrymq.client.consume.pop.pop_requests": ("LoanOver", "PopUnsupported", "Popped"),
    "gantrymq.client.produce.producer": ("Producer",),
    "gantrymq.client.produce.publishing": ("Publisher",),
    "gantrymq.client.consume.pull.pull_consumer": ("PullConsumer",),
    "gantrymq.client.produce.recall": ("RecallRefused", "RecallResult"),
    "gantrymq.client.messages.received": ("Received",),
    "gantrymq.client.consume.pop.simple_consumer": ("SimpleConsumer",),
    "gantrymq.client.core.requests": ("Reply",),
    "gantrymq.client.produce.request_reply": ("NotARequest", "RequestTimeout", "reply_to"),
    "gantrymq.client.produce.send_results": ("SendResults",),
    "gantrymq.client.produce.transactions": ("Decision", "HalfNotSafe", "Transaction"),
    "gantrymq.filter": ("BadSql",),
    "gantrymq.model": (
        "GroupConfig", "Message", "NameRefused", "Queue", "SendResult", "TopicConfig",
    ),
}  # fmt: skip
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
