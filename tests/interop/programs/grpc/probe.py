"""The official Python client for gRPC, which speaks to RocketMQ's proxy: `probe.py story JSON`.

One run sends every type of messages and reads them with simple and push consumers, all at the same
time. What happened is printed as JSON lines; the exit code is 0 when everything came that should.
"""

import json
import os
import sys
import threading
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

GRACE_SECONDS = 20
INVISIBLE_SECONDS = 15
_lock = threading.Lock()


def say(event, **fields):
    with _lock:
        sys.stdout.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def now_ms():
    return int(time.time() * 1000)


class Story:
    """What one program does, and what it still waits for."""

    def __init__(self, args):
        self._args = args
        self._settings = ClientConfiguration(args["endpoints"], Credentials(), request_timeout=5)
        self._missing = {kind: set(bodies) for kind, bodies in args["expected"].items()}
        self._end = time.monotonic() + args["timeout"]
        self._failures = set(args["fails"])

    def topic(self, kind):
        return self._args["topics"][kind]

    def came(self, kind, message):
        body = message.body.decode()
        say("message", kind=kind, body=body, msgId=message.message_id, tag=message.tag,
            keys=list(message.keys or ()), attempt=message.delivery_attempt,
            messageGroup=message.message_group, at=now_ms(),
            properties=dict(message.properties or {}))  # fmt: skip
        self._missing[kind].discard(body)

    def fails(self, kind, message):
        """Whether this message shall fail, which it does once; those for the dead always do."""
        body = message.body.decode()
        with _lock:
            wanted = body in self._failures or kind == "dead"
            self._failures.discard(body)
        if wanted:
            say("failed", kind=kind, body=body, attempt=message.delivery_attempt)
        return wanted

    def over(self):
        return time.monotonic() > self._end or not any(self._missing.values())

    def missing(self):
        return {kind: sorted(bodies) for kind, bodies in self._missing.items() if bodies}

    # reading

    def simple(self, kind, topic):
        consumer = SimpleConsumer(
            self._settings,
            self._args["groups"][kind],
            {topic: FilterExpression()},
            await_duration=2,
        )
        consumer.startup()

        def run():
            while not self.over():
                for message in self.received(consumer):
                    self.came(kind, message)
                    consumer.ack(message)

        threading.Thread(target=run, daemon=True).start()
        return consumer

    def received(self, consumer):
        try:
            return consumer.receive(16, INVISIBLE_SECONDS) or ()
        except Exception as failure:
            # The proxy may not have heard of a new consumer's settings yet.
            say("again", error=str(failure))
            time.sleep(0.5)
            return ()

    def push(self, kind, topic, expression="*"):
        story = self

        class Listener(MessageListener):
            def consume(self, message):
                if story.fails(kind, message):
                    return ConsumeResult.FAILURE
                story.came(kind, message)
                return ConsumeResult.SUCCESS

        consumer = PushConsumer(
            self._settings, self._args["groups"][kind], Listener(),
            {topic: FilterExpression(expression)},
        )  # fmt: skip
        consumer.startup()
        return consumer

    # sending

    def message(self, kind, body, **more):
        message = Message()
        message.topic = self.topic(kind)
        message.body = body.encode()
        for name, value in more.items():
            setattr(message, name, value)
        return message

    def send_all(self):
        class Checker(TransactionChecker):
            def check(self, message):
                say("checked", body=message.body.decode(), msgId=message.message_id)
                return TransactionResolution.COMMIT

        producer = Producer(self._settings, list(self._args["topics"].values()), checker=Checker())
        producer.startup()
        for index in range(6):
            message = self.message(
                "normal", f"normal-{index}", tag="ab"[index % 2], keys=f"k{index}"
            )
            message.add_property("color", "blue")
            self.sent("normal", message, producer.send(message))
        for index in range(8):
            shard = index % 2
            message = self.message("fifo", f"fifo-{shard}-{index}", message_group=f"shard{shard}")
            self.sent("fifo", message, producer.send(message))
        due = now_ms() + self._args["delayMs"]
        message = self.message("delay", "delay-0", delivery_timestamp=due // 1000)
        self.sent("delay", message, producer.send(message), due=due // 1000 * 1000)
        message = self.message("dead", "dead-0")
        self.sent("dead", message, producer.send(message))
        recalled = self.message("delay", "delay-recalled", delivery_timestamp=due // 1000)
        receipt = producer.send(recalled)
        self.sent("delay", recalled, receipt)
        producer.recall_message(recalled.topic, receipt.recall_handle)
        for decision in ("commit", "rollback", "unknown"):
            transaction = producer.begin_transaction()
            message = self.message("transaction", f"transaction-{decision}")
            self.sent("transaction", message, producer.send(message, transaction))
            if decision != "unknown":
                getattr(transaction, decision)()
        return producer

    def refused(self, producer):
        """A message of another type than its topic is for."""
        message = self.message("normal", "wrong", message_group="g")
        try:
            producer.send(message)
        except Exception as refusal:
            say("refused", error=str(refusal))

    def sent(self, kind, message, receipt, **more):
        say("sent", kind=kind, body=message.body.decode(), msgId=receipt.message_id, **more)

    def run(self):
        clients = [
            self.simple("normal", self.topic("normal")),
            self.push("push", self.topic("normal"), "a"),
            self.push("fifo", self.topic("fifo")),
            self.push("dead", self.topic("dead")),
            self.simple("delay", self.topic("delay")),
            self.simple("transaction", self.topic("transaction")),
        ]
        say("ready", clients=len(clients))
        producer = self.send_all()
        self.refused(producer)
        while not self.over():
            time.sleep(0.1)
        # What should not come has had its chance.
        time.sleep(self._args["lingerMs"] / 1000)
        missing = self.missing()
        say("done", missing=missing)
        return 1 if missing else 0


def main():
    args = json.loads(sys.argv[2])
    watchdog = threading.Timer(args["timeout"] + GRACE_SECONDS, lambda: os._exit(3))
    watchdog.daemon = True
    watchdog.start()
    try:
        status = Story(args).run()
    except Exception as failure:
        say("error", error=repr(failure))
        status = 1
    sys.stdout.flush()
    # Closing would wait for polls that are under way.
    os._exit(status)


if __name__ == "__main__":
    main()
