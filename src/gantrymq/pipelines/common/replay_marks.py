"""Properties that mark a message as one that was sent again."""

from typing import Final

REPLAY_ID: Final = "REPLAY_ID"
REPLAY_ORIGIN: Final = "REPLAY_ORIGIN"
"""The message that was sent again: its id, an @, and topic/broker/queue/offset."""
REPLAY_BORN: Final = "REPLAY_BORN"
REPLAY_STORED: Final = "REPLAY_STORED"
"""When the message was born and stored for the first time, in milliseconds since 1970."""
MARKS: Final = (REPLAY_ID, REPLAY_ORIGIN, REPLAY_BORN, REPLAY_STORED)
