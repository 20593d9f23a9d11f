"""Consume queues: the entries of each queue and the bitmaps beside them.

`consumequeue` is one queue, `queueext` its bitmaps, `queue_table` all queues of all topics. Entries
are derived from the log by `writing/dispatch.py`; what a pull reads by them is in `reading/`.
"""
