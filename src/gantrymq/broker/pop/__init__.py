"""POP: the broker hands out messages of any queue; each is invisible until acked or revived."""
