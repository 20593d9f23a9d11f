"""What takes a Spark of its own: a cluster of Spark's, one of ours, and a session between them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))

from sparkkit import Processes
from standalone import Standalone

from gantrymq.spark.runtime.bundle import bundle_settings, make_bundle
from gantrymq.spark.runtime.session import local_session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A name server and a broker, each a process of its own."""
    processes = Processes(tmp_path_factory.mktemp("cluster"))
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that an executor needs, in one file."""
    target = tmp_path_factory.mktemp("bundle") / "gantrymq.tar.gz"
    make_bundle(target)
    return target


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers of Spark's."""
    running = Standalone(tmp_path_factory.mktemp("standalone"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def far_spark(
    standalone: Standalone, bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A session whose two executors have nothing but Python and the bundle."""
    settings = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        **bundle_settings(str(bundle)),
        **standalone.settings(),
    }
    session = local_session("far", settings=settings, brief=True)
    yield session
    session.stop()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test has."""
    return str(request.node.name).replace("[", "-").replace("]", "")[:100]
