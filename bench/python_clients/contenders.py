"""Who is compared in which work, and what our client has to reach."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

OURS, KAFKA, NATS, REDIS = "GantryMQ", "Kafka", "NATS JetStream", "Redis Streams"


@dataclass(frozen=True)
class Contender:
    """A client library as it is used, and the server that it talks to."""

    name: str
    library: str
    """Its name for the driver."""
    server: str
    count: int
    """Messages of a round: enough for a few seconds."""
    options: dict[str, str] = field(default_factory=dict)
    tuned: bool = False
    """With settings that a library's defaults are far from: shown, and no goal."""

    @property
    def words(self) -> list[str]:
        """Its options as the driver takes them."""
        return [word for k, v in self.options.items() for word in ("--option", f"{k}={v}")]


class Goal(NamedTuple):
    """The rate of the fastest way to use our client over that of a library, not tuned."""

    library: str
    least: float


@dataclass(frozen=True)
class Comparison:
    """One work, its contenders and its goals."""

    workload: str
    work: str
    """Its name for the driver."""
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...]
    warm_up: int = 10_000

    @property
    def servers(self) -> set[str]:
        return {each.server for each in self.contenders}

    @property
    def libraries(self) -> list[str]:
        """Ours left out, each once."""
        return list(dict.fromkeys(c.library for c in self.contenders if c.server != OURS))

    @property
    def ours(self) -> list[str]:
        """The ways to use our client."""
        return [each.name for each in self.contenders if each.server == OURS]


_GANTRYMQ = "gantrymq"
_CONFLUENT, _AIOKAFKA, _NATS = "confluent-kafka", "aiokafka", "nats-py"
_REDIS, _REDIS_ASYNCIO = "redis-py", "redis.asyncio"

SENDS: Final = Comparison(
    "python-clients-sends",
    "pipelined",
    (
        Contender("GantryMQ, submit", _GANTRYMQ, OURS, 200_000),
        Contender("GantryMQ, send_all", _GANTRYMQ, OURS, 400_000, {"how": "send_all"}),
        Contender("confluent-kafka, linger 0", _CONFLUENT, KAFKA, 200_000, {"linger_ms": "0"}),
        Contender("confluent-kafka, linger 5 ms", _CONFLUENT, KAFKA, 200_000, {"linger_ms": "5"}),
        Contender("confluent-kafka, 4,096 under way", _CONFLUENT, KAFKA, 200_000,
                  {"linger_ms": "5", "window": "4096"}),
        Contender("aiokafka", _AIOKAFKA, KAFKA, 100_000),
        Contender("aiokafka, batches of 1 MiB", _AIOKAFKA, KAFKA, 100_000,
                  {"batch_bytes": str(1 << 20)}, tuned=True),
        Contender("nats-py, publish_async", _NATS, NATS, 100_000),
        Contender("nats-py, 512 tasks", _NATS, NATS, 100_000, {"how": "tasks"}),
        Contender("redis-py, pipelines of 512", _REDIS, REDIS, 200_000),
        Contender("redis.asyncio, pipelines of 512", _REDIS_ASYNCIO, REDIS, 100_000),
    ),
    (Goal(_CONFLUENT, 1.0), Goal(_AIOKAFKA, 5.0)),
)  # fmt: skip

TASKS: Final = Comparison(
    "python-clients-tasks",
    "tasks",
    (
        Contender("GantryMQ", _GANTRYMQ, OURS, 200_000),
        Contender("aiokafka", _AIOKAFKA, KAFKA, 100_000),
        Contender("nats-py", _NATS, NATS, 100_000),
        Contender("redis.asyncio", _REDIS_ASYNCIO, REDIS, 100_000),
    ),
    (Goal(_NATS, 1.5),),
    warm_up=5_000,
)

CONSUMES: Final = Comparison(
    "python-clients-consumes",
    "consume",
    (
        Contender("GantryMQ", _GANTRYMQ, OURS, 300_000),
        Contender("confluent-kafka", _CONFLUENT, KAFKA, 300_000),
        Contender("aiokafka, commit every 5 s", _AIOKAFKA, KAFKA, 300_000),
        Contender("aiokafka, commit after each batch", _AIOKAFKA, KAFKA, 300_000,
                  {"commit_seconds": "0"}),
        Contender("nats-py", _NATS, NATS, 100_000),
        Contender("redis-py", _REDIS, REDIS, 300_000),
    ),
    (Goal(_AIOKAFKA, 1.3),),
)  # fmt: skip
