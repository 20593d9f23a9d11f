"""POP: the broker hands out messages of any queue, and each is acknowledged by itself."""
