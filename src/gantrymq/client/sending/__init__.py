"""One send: choose a queue, encode the request, transmit, retry, settle.

Producers and the trace writer use this; the public producer is in `produce`.
"""
