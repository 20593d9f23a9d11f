"""What stands in the place of a secret in texts that people and tools see."""

from collections.abc import Collection
from typing import Final

import msgspec

HIDDEN: Final = "(hidden)"
"""What is shown instead of a secret."""


def repr_without(struct: msgspec.Struct, secrets: Collection[str]) -> str:
    """The text of a struct for logs and tracebacks, without the values of the fields `secrets`.

    A secret that is empty is shown, because that it is not set is what people look for.
    """
    shown = (
        f"{name}={HIDDEN if value and name in secrets else repr(value)}"
        for name in struct.__struct_fields__
        for value in (getattr(struct, name),)
    )
    return f"{type(struct).__name__}({', '.join(shown)})"
