"""A store's files, read by other programs as arrays while a broker may write to them.

`folder` is the whole store, `mapped` log and queues, `index_files` the key index. Nothing here
writes, locks or runs in a broker.
"""
