"""What a consumer reports to an operator: RocketMQ's ConsumerRunningInfo."""

from collections.abc import Callable
from typing import Any

from gantrymq.client.consume.membership.consume_stats import ConsumeStats
from gantrymq.client.consume.membership.offset_store import queue_key
from gantrymq.client.consume.membership.setup import Setup
from gantrymq.client.consume.queues.ordered_queue import OrderedProcessQueue
from gantrymq.client.consume.queues.process_queue import ProcessQueue
from gantrymq.protocol import fastjson

MIB = 1024 * 1024


def running_info(
    setup: Setup,
    process_queues: list[ProcessQueue],
    stats: ConsumeStats,
    start_ms: int,
    now: float,
    wall_ms: Callable[[float], int],
) -> bytes:
    """The body of an answer to GET_CONSUMER_RUNNING_INFO; its map is keyed by queues."""
    pairs = [
        (queue_key(process_queue.queue), _queue_row(process_queue, wall_ms))
        for process_queue in process_queues
    ]
    return fastjson.dump_object_keyed(
        "mqTable",
        pairs,
        mqPopTable={},
        properties=_properties(setup, start_ms),
        statusTable={topic: stats.of(topic).as_status(now) for topic in setup.subscriptions},
        subscriptionSet=list(setup.subscriptions.values()),
        userConsumerInfo={},
    )


def _queue_row(process_queue: ProcessQueue, wall_ms: Callable[[float], int]) -> dict[str, Any]:
    progress = process_queue.progress
    open_offsets = [message.offset for message in progress.open_items]
    lock_at = process_queue.locked_at if isinstance(process_queue, OrderedProcessQueue) else None
    return {
        "cachedMsgCount": progress.count,
        "cachedMsgMaxOffset": max(open_offsets, default=0),
        "cachedMsgMinOffset": min(open_offsets, default=0),
        "cachedMsgSizeInMiB": progress.bytes_open // MIB,
        "commitOffset": progress.done,
        "droped": process_queue.dropped,
        "lastConsumeTimestamp": wall_ms(process_queue.last_finish),
        "lastLockTimestamp": wall_ms(lock_at) if lock_at is not None else 0,
        "lastPullTimestamp": wall_ms(process_queue.last_pull),
        "locked": lock_at is not None,
        "transactionMsgCount": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgMinOffset": 0,
        "tryUnlockTimes": 0,
    }


def _properties(setup: Setup, start_ms: int) -> dict[str, str]:
    """The properties that mqadmin parses or prints."""
    options = setup.options
    return {
        "PROP_CLIENT_VERSION": "V4_9_8",
        "PROP_CONSUMEORDERLY": "true" if setup.ordered else "false",
        "PROP_CONSUMER_START_TIMESTAMP": str(start_ms),
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_NAMESERVER_ADDR": ";".join(setup.instance.namesrv_addresses),
        "PROP_THREADPOOL_CORE_SIZE": str(options.consume_thread_max),
        "consumeFromWhere": options.consume_from_where,
        "consumerGroup": setup.group,
        "maxReconsumeTimes": str(options.max_reconsume_times),
        "messageModel": options.message_model,
        "pullBatchSize": str(options.pull_batch_size),
        "pullThresholdForQueue": str(options.pull_threshold_for_queue),
    }
