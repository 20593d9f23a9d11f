"""Frames over asyncio: `connection` for both ends, `server` for those that listen.

What a request means is decided by the handlers of `broker` and `nameserver`.
"""
