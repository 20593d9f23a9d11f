"""Java's types, where a declaration has to say more than Python's own ones do."""

from typing import Annotated, Final

import msgspec

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
ENUM: Final = "java enum"
"""Under this name a declaration keeps the names of its enum."""

Int32 = Annotated[int, msgspec.Meta(ge=-INT_MAX - 1, le=INT_MAX)]
"""Java's int. A plain int is its long."""


def java_enum(*names: str) -> msgspec.Meta:
    """Marks text as one of Java's enums; the names stand in the order of their ordinals."""
    return msgspec.Meta(pattern=f"^({'|'.join(names)})$", extra={ENUM: names})
