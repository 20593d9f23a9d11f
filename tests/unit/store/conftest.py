"""Fixtures of the store's tests."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq.base.disk import Disk, OsDisk
from gantrymq.testing.disk import MemoryDisk


@pytest.fixture(params=["os", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """A disk and a directory on it."""
    return (OsDisk(), str(tmp_path / "store")) if request.param == "os" else (MemoryDisk(), "store")


@pytest.fixture
def quiet() -> Iterator[None]:
    """For tests that provoke what the store says loudly; later tests hear it again."""
    logger = logging.getLogger("gantrymq.store")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)
