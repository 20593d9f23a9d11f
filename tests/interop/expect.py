"""What the tests of all clients say in the same words."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from clients import Line


def bodies(count: int, prefix: str = "body") -> list[str]:
    """The bodies a program sends."""
    return [f"{prefix}-{index}" for index in range(count)]


def by_shard(messages: Iterable[Line]) -> dict[str, list[int]]:
    """The indexes of ordered messages as they came, for each shard."""
    found: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        _, shard, index = message["body"].split("-")
        found[shard].append(int(index))
    return dict(found)


def assert_offsets_are_consecutive(messages: Sequence[Line]) -> None:
    """In each queue the offsets run from 0 without a gap."""
    queues: dict[int, list[int]] = defaultdict(list)
    for message in messages:
        queues[message["queueId"]].append(message["queueOffset"])
    for offsets in queues.values():
        assert sorted(offsets) == list(range(len(offsets)))
