"""Offsets as text: one way to write them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets, from_json, to_json

queues = st.builds(
    Queue, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), st.integers(0, 12)
)
offsets = st.dictionaries(queues, st.integers(0, 10_000), max_size=12)


@given(offsets, st.randoms())
def test_the_same_offsets_are_always_the_same_text(found: QueueOffsets, rng: object) -> None:
    """Spark compares offsets as text: another order of keys would be new data for ever."""
    items = list(found.items())
    rng.shuffle(items)  # type: ignore[attr-defined]

    assert json.dumps(to_json(found)) == json.dumps(to_json(dict(items)))


@given(offsets)
def test_offsets_survive_the_checkpoint(found: QueueOffsets) -> None:
    """What Spark wrote down is read back as it was."""
    text = json.dumps(to_json(found))

    assert found == from_json(json.loads(text))


def test_queues_are_written_by_number() -> None:
    """Queue 10 comes behind queue 9, as people read them."""
    found = to_json({Queue("t", "b", number): number for number in (10, 9, 1)})

    assert list(found["t"]["b"]) == ["1", "9", "10"]
