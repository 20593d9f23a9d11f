"""Messages as a consumer gets them, and how they are finished.

`Received` is a stored message, `Delivery` one that has to be finished by ack, retry or dead.
"""
