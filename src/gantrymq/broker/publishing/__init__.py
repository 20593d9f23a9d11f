"""Epochs: messages staged in a topic that no client reads, made visible together, once.

`notes` are the steps of an epoch in the log, `journal` writes them, `writer_table` knows what they
add up to, `publisher` and `share_copy` copy staged messages into their queues.
"""
