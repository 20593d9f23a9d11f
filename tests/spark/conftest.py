"""One cluster and one Spark session for all tests of this folder: a session takes seconds."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import Processes

from gantrymq.spark.runtime.session import local_session

# The demonstration is no installed package; its proof is tested here, with the Spark that is up.
sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A name server and a broker, each a process of its own."""
    processes = Processes(tmp_path_factory.mktemp("cluster"))
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark on two cores of this machine; all its files in a folder of its own."""
    folder = tmp_path_factory.mktemp("spark")
    session = local_session(
        "tests",
        master="local[2]",
        brief=True,
        settings={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
        },
    )
    yield session
    session.stop()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test has."""
    return str(request.node.name).replace("[", "-").replace("]", "")[:100]


@pytest.fixture
def uncompiled(spark: Any) -> Iterator[None]:
    """For queries over a few rows: to compile them takes longer than to run them."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    yield
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
