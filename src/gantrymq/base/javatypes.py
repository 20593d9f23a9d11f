"""Java's types, for declarations that need more than Python's own types."""

from typing import Annotated, Final

import msgspec

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
ENUM: Final = "java enum"
"""Under this name a declaration keeps the names of its enum."""

Int32 = Annotated[int, msgspec.Meta(ge=-INT_MAX - 1, le=INT_MAX)]
"""Java's int. A plain int is its long."""


def java_enum(*names: str) -> msgspec.Meta:
    """Mark text as a Java enum; the names are in the order of their ordinals."""
    return msgspec.Meta(pattern=f"^({'|'.join(names)})$", extra={ENUM: names})
