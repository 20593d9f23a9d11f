"""Proves that both ends of a link between members have the key of their raft group. Pure.

Each side sends a challenge in its greeting and gets it back hashed with the key, so that the key
itself never travels and a recorded proof is of no use on another connection. What follows on the
connection is not signed: who can change bytes on the way is stopped by TLS.
"""

import hmac
from typing import Final

from gantrymq.replication.group.wire import Greeting

CONNECTS: Final = b"connects"
"""Hashed by the member that made the connection, so that its own answer cannot be sent back."""
ANSWERS: Final = b"answers"


class GroupKey:
    """The secret that all members of a group have in their settings."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "GroupKey(<hidden>)"

    def proof(self, side: bytes, mine: Greeting, theirs: Greeting) -> bytes:
        """The answer to the challenge of `theirs`, by the sender of `mine`."""
        names = (mine.group, mine.sender, theirs.sender)
        parts = (side, *(name.encode() for name in names), theirs.challenge)
        signed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(self._secret, signed, "sha256")

    def proves(self, side: bytes, mine: Greeting, theirs: Greeting, said: bytes) -> bool:
        """Whether `said` is what the sender of `theirs` must answer to the challenge of `mine`."""
        return hmac.compare_digest(self.proof(side, theirs, mine), said)
