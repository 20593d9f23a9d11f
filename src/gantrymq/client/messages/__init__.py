"""Messages as a consumer gets them, and the verbs that finish them.

`Received` is a stored message, `Delivery` one that has to be finished by ack, retry or dead.
"""
