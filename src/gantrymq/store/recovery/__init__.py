"""What a store needs to open after a crash: checkpoints, recovery, and rebuilding from the log.

`checkpoint` is the file and `checkpointer` writes it, `recovery` opens a store, `rebuild` derives
queues and index again from the whole log. The dispatcher they use is the live one, in `writing/`.
"""
