"""Stretches of a file from memory: the compiled kernel gives what the readable one gives."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import outcome, pure, twin

BASE, CONTENT = 4096, bytes(range(256)) * 64
runs = st.lists(
    st.tuples(st.integers(BASE - 1, BASE + len(CONTENT) + 10), st.integers(0, 300)), max_size=6
)


def both(*arguments: Any) -> Any:
    """What both kernels give; they must agree."""
    first = outcome(twin("read_warm"), *arguments)
    assert first == outcome(pure("read_warm"), *arguments)
    return first


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path: Path = tmp_path_factory.mktemp("warm") / "file"
    path.write_bytes(CONTENT)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@given(wanted=runs)
def test_stretches_come_one_behind_the_other_or_not_at_all(
    file: int, wanted: list[tuple[int, int]]
) -> None:
    """A stretch that the file does not have whole is somebody else's matter."""
    inside = all(BASE <= at and at + size <= BASE + len(CONTENT) for at, size in wanted)
    expected = b"".join(CONTENT[at - BASE : at - BASE + size] for at, size in wanted)
    found = both(file, wanted, BASE)

    assert found == expected if inside else found in (None, expected)


def test_a_descriptor_that_is_none_is_no_error(file: int) -> None:
    """The reader is sent another way, where the error has its name."""
    assert both(-1, [(BASE, 1)], BASE) is None
