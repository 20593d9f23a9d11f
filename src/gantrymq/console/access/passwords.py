"""Salted hashes of passwords: scrypt, with its costs in the text, so that they may rise later.

`scrypt$16384$8$1$SALT$HASH`, salt and hash in base64.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

from gantrymq.base.tokens import challenge

COST, BLOCK, LANES = 1 << 14, 8, 1
"""About 50 ms and 16 MiB for each guess."""
COST_MAX: Final = 1 << 17
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
CHARACTERS_MIN: Final = 8
CHARACTERS_MAX: Final = 256


def hashed(password: str) -> str:
    """The text that is kept of a password."""
    salt = challenge()[:SALT_BYTES]
    found = _scrypt(password, salt, COST, BLOCK, LANES)
    return "$".join(("scrypt", f"{COST}${BLOCK}${LANES}", _text(salt), _text(found)))


def is_right(password: str, kept: str) -> bool:
    """Whether this is the password of a kept text; takes as long for a wrong one."""
    parts = parse(kept)
    if parts is None or len(password) > CHARACTERS_MAX:
        return False
    (cost, block, lanes), salt, wanted = parts
    return hmac.compare_digest(_scrypt(password, salt, cost, block, lanes), wanted)


def parse(kept: str) -> tuple[tuple[int, int, int], bytes, bytes] | None:
    """Costs, salt and hash of a kept text; None if it is none."""
    words = kept.split("$")
    if len(words) != 6 or words[0] != "scrypt" or not all(map(str.isdecimal, words[1:4])):
        return None
    cost, block, lanes = map(int, words[1:4])
    if not 2 <= cost <= COST_MAX or cost & (cost - 1) or block != BLOCK or lanes != LANES:
        return None
    try:
        salt, found = (base64.b64decode(word, validate=True) for word in words[4:])
    except binascii.Error:
        return None
    return ((cost, block, lanes), salt, found) if len(found) == HASH_BYTES else None


def _scrypt(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=cost,
        r=block,
        p=lanes,
        maxmem=256 * cost * block,
        dklen=HASH_BYTES,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
