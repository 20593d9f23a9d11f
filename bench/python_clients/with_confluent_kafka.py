"""confluent-kafka: librdkafka, whose threads do the work; the program calls and polls."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from bench.python_clients.library import (
    BATCH,
    BODY,
    COMMIT_SECONDS,
    WINDOW,
    Commits,
    Library,
    Stopwatch,
    WrongMessage,
)

POLL_SECONDS_MAX = 30.0


class ConfluentKafka(Library):
    async def open(self) -> None:
        self._pending = 0
        self._error: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": self.target.address,
                "acks": "all",
                "linger.ms": float(self.options.get("linger_ms", "5")),
            }
        )

    async def close(self) -> None:
        self._producer.flush()

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._pending -= 1
        if error is not None:
            self._error = error

    async def send_pipelined(self, count: int) -> None:
        producer, topic, delivered = self._producer, self.topic, self._delivered
        window = int(self.options.get("window", WINDOW))
        for _ in range(count):
            while self._pending >= window:
                if not producer.poll(POLL_SECONDS_MAX):
                    raise WrongMessage("no answer")
            producer.produce(topic, BODY, on_delivery=delivered)
            self._pending += 1
            producer.poll(0)
        producer.flush()
        if self._error is not None:
            raise KafkaException(self._error)
        if self._pending:
            raise WrongMessage(f"{self._pending} messages were not confirmed")

    async def consume(self, count: int, watch: Stopwatch) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.target.address,
                "group.id": self.topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([self.topic], on_assign=lambda *_: watch.start())
        seen = committed = 0  # a commit without anything new is an error
        commits = Commits(COMMIT_SECONDS)
        last = time.perf_counter()
        while seen < count:
            messages = consumer.consume(BATCH, timeout=1.0)
            if messages:
                last = time.perf_counter()
            elif time.perf_counter() - last > POLL_SECONDS_MAX:
                raise WrongMessage(f"{count - seen} messages did not come")
            for message in messages:
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                self.check(message.value() or b"")
                seen += 1
            if seen > committed and (commits.due() or seen == count):
                consumer.commit(asynchronous=False)
                committed = seen
        watch.stop()
        consumer.close()
