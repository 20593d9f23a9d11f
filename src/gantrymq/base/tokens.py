"""Random names, unique to each run: of files, runs and writers; and bytes that nobody foresees.

Code that *decides* by chance takes a `random.Random`, so that a simulation can repeat it. A name
decides nothing, so it comes from the machine; ruff's TID251 refuses that elsewhere.
"""

import secrets
import uuid


def run_token() -> str:
    """Eight digits that mark the files of one run of a pipeline."""
    return secrets.token_hex(4)


def challenge() -> bytes:
    """Bytes that nobody can foresee, for the other side of a connection to hash with its key."""
    return secrets.token_bytes(32)


def secret_text() -> str:
    """A secret key that nobody can guess: letters and digits, a letter first.

    So it is text in YAML, too, where other digits would be a number.
    """
    return "s" + secrets.token_hex(16)


def unique_id() -> str:
    """A UUID, with its dashes."""
    return str(uuid.uuid4())


def unique_name() -> str:
    """A UUID as 32 digits, for a file or a folder."""
    return uuid.uuid4().hex
