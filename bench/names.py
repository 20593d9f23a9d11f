"""Which workloads are meant by the words of a command line."""

from collections.abc import Collection, Iterable


class UnknownWorkload(Exception):
    """No workload has this name, and none begins with it."""


def chosen(words: Iterable[str], names: Collection[str]) -> list[str]:
    """A word is a name, or what several names begin with: `spark` is `spark-store` and the others.

    Each is there once, in the order of the words.
    """
    found: dict[str, None] = {}
    for word in words:
        meant = [word] if word in names else [n for n in names if n.startswith(f"{word}-")]
        if not meant:
            raise UnknownWorkload(f"no workload {word}")
        found |= dict.fromkeys(meant)
    return list(found)
