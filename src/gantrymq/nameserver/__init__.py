"""The name server: a registry of routes that brokers renew.

`table` decides, `handlers` answer requests, `app` starts and stops it. Only `kv` is on disk.
"""
