"""POP: the broker hands out messages of any queue; each is invisible until acked or revived.

`pop_reader` takes messages, `revive_log` and `checkpoints` remember them, `reviver` delivers again
what was not acknowledged, `order` is for ordered pops, `long_polling` holds requests. The requests
themselves are in `handlers/pop.py` and `handlers/acks.py`.
"""
