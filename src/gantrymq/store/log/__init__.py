"""The commit log: its files, and how written bytes become durable.

`segment` and `commitlog` are the files, `scan` reads all topics from a log offset on, `flush` and
`syncer` (with the process `sync_helper`) make bytes durable, `fence` remembers a flush that failed.
Nothing here knows queues or keys; records are encoded and written by `writing/`.
"""
