"""The hot inner loops: a compiled module and its readable pure-Python twin.

Other packages import from here only. `GRADE` says which of the two is in use; `GANTRY_PURE=1`
forces the twin. Both give the same bytes and values for the same arguments.
"""

import os

from gantrymq.kernel.batches import (
    Batchable,
    BatchLimits,
    EncodedBatch,
    ItemSizes,
    is_plain,
    stored_form,
)
from gantrymq.kernel.pulled import Cut
from gantrymq.kernel.records import (
    ENTRY,
    FILLER_SIZE,
    SECTOR,
    STOP_BLANK,
    STOP_INVALID,
    STOP_PARTIAL,
    STOP_ZERO,
    Buffer,
    RecordItem,
    Selected,
    Walk,
    Walked,
    is_torn,
    store_ms_of,
    tag_code_of,
)
from gantrymq.kernel.requests import SendParts, plain_properties
from gantrymq.kernel.send_runs import Request, SendAccess, SendRules

try:
    if os.environ.get("GANTRY_PURE") == "1":
        raise ImportError("GANTRY_PURE=1")
    from gantrymq.kernel._fast import (
        HmacSha1,
        KeyRows,
        QueueTail,
        SendRun,
        SyncThread,
        batch_items,
        crc32,
        cut_commands,
        cut_records,
        cut_requests,
        cut_stored,
        dispatch_records,
        encode_batch,
        encode_records,
        encode_sends,
        entry_runs,
        find_property,
        hash_keys,
        index_keys,
        java_hash,
        measure_items,
        offset_msg_ids,
        publish_queues,
        pull_answer,
        read_send,
        read_warm,
        select_entries,
        send_answer,
        stored_answer,
        walk_records,
    )

    GRADE = "compiled"
except ImportError as reason:
    from zlib import crc32

    from gantrymq.kernel.batches import batch_items, encode_batch, measure_items
    from gantrymq.kernel.dispatching import QueueTail, dispatch_records, publish_queues
    from gantrymq.kernel.frames import cut_commands, pull_answer, send_answer
    from gantrymq.kernel.keys import KeyRows
    from gantrymq.kernel.pulled import cut_records
    from gantrymq.kernel.records import (
        encode_records,
        find_property,
        hash_keys,
        index_keys,
        java_hash,
        select_entries,
        walk_records,
    )
    from gantrymq.kernel.requests import encode_sends
    from gantrymq.kernel.responses import cut_stored
    from gantrymq.kernel.runs import entry_runs
    from gantrymq.kernel.send_runs import SendRun, cut_requests
    from gantrymq.kernel.sends import offset_msg_ids, read_send, stored_answer
    from gantrymq.kernel.signing import HmacSha1
    from gantrymq.kernel.syncing import SyncThread
    from gantrymq.kernel.warm import read_warm

    GRADE = f"pure ({reason})"

__all__ = [
    "ENTRY",
    "FILLER_SIZE",
    "GRADE",
    "SECTOR",
    "STOP_BLANK",
    "STOP_INVALID",
    "STOP_PARTIAL",
    "STOP_ZERO",
    "BatchLimits",
    "Batchable",
    "Buffer",
    "Cut",
    "EncodedBatch",
    "HmacSha1",
    "ItemSizes",
    "KeyRows",
    "QueueTail",
    "RecordItem",
    "Request",
    "Selected",
    "SendAccess",
    "SendParts",
    "SendRules",
    "SendRun",
    "SyncThread",
    "Walk",
    "Walked",
    "batch_items",
    "crc32",
    "cut_commands",
    "cut_records",
    "cut_requests",
    "cut_stored",
    "dispatch_records",
    "encode_batch",
    "encode_records",
    "encode_sends",
    "entry_runs",
    "find_property",
    "hash_keys",
    "index_keys",
    "is_plain",
    "is_torn",
    "java_hash",
    "measure_items",
    "offset_msg_ids",
    "plain_properties",
    "publish_queues",
    "pull_answer",
    "read_send",
    "read_warm",
    "select_entries",
    "send_answer",
    "store_ms_of",
    "stored_answer",
    "stored_form",
    "tag_code_of",
    "walk_records",
]
