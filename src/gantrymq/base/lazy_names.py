"""Public names of a package that are loaded when they are first used.

Importing `gantrymq` must cost nothing, so a package lists where its public names live and loads a
module when one of its names is asked for (PEP 562).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

Homes = Mapping[str, Sequence[str]]
"""The public names of each module."""


def lazy_names(package: str, homes: Homes) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The package's `__getattr__` and `__dir__`."""
    home_of = {name: home for home, names in homes.items() for name in names}
    own = vars(sys.modules[package])

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own[name] = value = getattr(import_module(home_of[name]), name)
        return value

    return load, lambda: sorted({*own, *home_of})
