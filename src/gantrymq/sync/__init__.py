"""The blocking client: the same names as the asynchronous one, without `async`.

    from gantrymq.sync import Producer

    with Producer("localhost:9876", group="shop") as producer:
        producer.send(Message("orders", b"..."))

One background thread runs one event loop for all objects. Each call crosses to that thread once, so
the bulk calls (`send_many`, `poll`, `finish_many`) are the fast ones. After a fork the objects open
again in the child by themselves.
"""

from gantrymq.sync.admin import Admin
from gantrymq.sync.app import App
from gantrymq.sync.consumer import Consumer, Delivery
from gantrymq.sync.dead_letters import DeadLetters
from gantrymq.sync.finder import Finder
from gantrymq.sync.portal import Portal
from gantrymq.sync.producer import Producer
from gantrymq.sync.pull import LitePullConsumer, PullConsumer
from gantrymq.sync.simple import Popped, SimpleConsumer

__all__ = [
    "Admin",
    "App",
    "Consumer",
    "DeadLetters",
    "Delivery",
    "Finder",
    "LitePullConsumer",
    "Popped",
    "Portal",
    "Producer",
    "PullConsumer",
    "SimpleConsumer",
]
