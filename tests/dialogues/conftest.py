"""Servers of ours for the replay, shared by all dialogues."""

from collections.abc import Iterator

import pytest
from gantry_up import running


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of the name server and of the broker."""
    with running(tmp_path_factory.mktemp("dialogues")) as found:
        yield found
