"""One verb of the C++ client a run: `probe.py VERB JSON`.

The C++ library (librocketmq) is inside the Python package `rocketmq`. What happened is printed as
JSON lines; the exit code is 0 when the verb did all it was asked to do.
"""

import json
import os
import queue
import sys
import threading
import time

from rocketmq.client import Message, Producer, PullConsumer, PushConsumer

GRACE_SECONDS = 20
DEFAULTS = {
    "count": 1, "expected": 1, "timeout": 30, "body": "body", "group": "probe", "tags": None,
    "keys": None, "shards": 0, "delayLevel": 0, "expression": "*", "failures": 0, "lingerMs": 0,
}  # fmt: skip
_lock = threading.Lock()


def say(event, **fields):
    with _lock:
        sys.stdout.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def text(value):
    return value.decode() if value is not None else None


def fields(message):
    return {
        "msgId": message.id,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "bornTime": message.born_timestamp,
        "storeTime": message.store_timestamp,
        "tags": text(message.tags),
        "keys": text(message.keys),
        "body": text(message.body),
        "reconsumeTimes": message.reconsume_times,
    }


def send(args):
    """Sync, or to the queue of a shard when there are shards."""
    producer = Producer(f"{args['group']}_producer", timeout=5000)
    producer.set_namesrv_addr(args["namesrv"])
    producer.start()
    for index in range(args["count"]):
        shard = index % args["shards"] if args["shards"] else None
        middle = "" if shard is None else f"-{shard}"
        message = Message(args["topic"])
        message.set_body(f"{args['body']}{middle}-{index}")
        if args["tags"]:
            message.set_tags(args["tags"][index % len(args["tags"])])
        if args["keys"]:
            message.set_keys(f"{args['keys']}{index}")
        if args["delayLevel"]:
            message.set_delay_time_level(args["delayLevel"])
        sent = (
            producer.send_sync(message) if shard is None else producer.send_orderly(message, shard)
        )
        say(
            "sent", index=index, status=sent.status.name, msgId=sent.msg_id, queueOffset=sent.offset
        )
    producer.shutdown()


def consume(args, orderly):
    """Until as many messages came as are expected; the first tries of each may fail."""
    arrived = queue.Queue()
    tries = {}

    def on_message(message):
        found = fields(message)
        tries[found["body"]] = tries.get(found["body"], 0) + 1
        if tries[found["body"]] <= args["failures"]:
            say("failed", **found)
            raise RuntimeError("as the test wants it")
        say("message", **found)
        arrived.put(found)

    consumer = PushConsumer(args["group"], orderly=orderly)
    consumer.set_namesrv_addr(args["namesrv"])
    consumer.set_instance_name(f"probe{os.getpid()}")
    consumer.subscribe(args["topic"], on_message, args["expression"])
    consumer.start()
    say("ready")
    end = time.monotonic() + args["timeout"]
    for _ in range(args["expected"]):
        arrived.get(timeout=max(0.1, end - time.monotonic()))
    time.sleep(args["lingerMs"] / 1000)
    consumer.shutdown()
    say("done", count=args["expected"])


def pull(args):
    """Every message that is there, from the first one on."""
    consumer = PullConsumer(args["group"])
    consumer.set_namesrv_addr(args["namesrv"])
    consumer.start()
    count = 0
    end = time.monotonic() + args["timeout"]
    while count < args["expected"] and time.monotonic() < end:
        for message in consumer.pull(args["topic"], args["expression"]):
            say("message", **fields(message))
            count += 1
    consumer.shutdown()
    if count < args["expected"]:
        raise RuntimeError(f"{count} of {args['expected']} messages came")
    say("done", count=count)


VERBS = {
    "send-sync": send,
    "consume-concurrently": lambda args: consume(args, orderly=False),
    "consume-orderly": lambda args: consume(args, orderly=True),
    "pull": pull,
}


def main():
    args = {**DEFAULTS, **json.loads(sys.argv[2])}
    watchdog = threading.Timer(args["timeout"] + GRACE_SECONDS, lambda: os._exit(3))
    watchdog.daemon = True
    watchdog.start()
    status = 0
    try:
        VERBS[sys.argv[1]](args)
    except Exception as failure:
        say("error", error=repr(failure))
        status = 1
    sys.stdout.flush()
    # The library's threads do not always end by themselves.
    os._exit(status)


if __name__ == "__main__":
    main()
