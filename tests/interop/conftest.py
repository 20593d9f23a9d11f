"""Clusters that the whole suite shares, and fresh names for every test.

`INTEROP_AGAINST=4.9.7` (or `5.3.3`) runs the tests against that release of RocketMQ in place of
ours: what passes there is a fact about RocketMQ, not a wish of ours.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import toolchain
from clients import JavaClient
from clusters import AGAINST, EVERYWHERE, OURS, Cluster, Clusters
from grpc_stories import GrpcStories
from our_client import Scene

from gantrymq.spark.runtime.session import local_session

_numbers = itertools.count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Against one release only the tests of that release are left."""
    if AGAINST == OURS:
        return
    left = [item for item in items if _where(item) == AGAINST]
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = left


def _where(item: pytest.Item) -> str:
    call = getattr(item, "callspec", None)
    return str(call.params.get("where", AGAINST)) if call else AGAINST


@pytest.fixture(scope="session", autouse=True)
def programs() -> Iterator[None]:
    """Everything built; without the tools there is no suite."""
    try:
        toolchain.build_all()
    except toolchain.MissingToolError as missing:
        os.write(2, f"{missing}\n".encode())
        pytest.exit(str(missing), toolchain.EXIT_MISSING_TOOL)
    yield
    JavaClient.stop_all()


@pytest.fixture(scope="session")
def clusters(programs: None) -> Iterator[Clusters]:
    """The clusters of this run."""
    running = Clusters()
    yield running
    running.close()


@pytest.fixture(scope="session")
def grpc_stories(clusters: Clusters) -> Iterator[GrpcStories]:
    """The clients for gRPC at work; who asks for it early has other things to do meanwhile."""
    with GrpcStories(clusters.of(AGAINST).namesrv) as running:
        yield running


@pytest.fixture
def cluster(clusters: Clusters) -> Cluster:
    """The cluster that foreign clients talk to among themselves."""
    return clusters.of(AGAINST)


@pytest.fixture
def namesrv(cluster: Cluster) -> str:
    """The address every client starts from."""
    return cluster.namesrv


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Names that no other test uses."""
    return lambda kind: f"{kind}_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def topic(fresh: Callable[[str], str]) -> str:
    """A topic name for this test."""
    return fresh("topic")


@pytest.fixture
def group(fresh: Callable[[str], str]) -> str:
    """A consumer group name for this test."""
    return fresh("group")


@pytest.fixture(params=EVERYWHERE)
def where(request: pytest.FixtureRequest) -> str:
    """Whose servers: ours, or RocketMQ's of a release."""
    return str(request.param)


@pytest.fixture
def scene(clusters: Clusters, where: str, topic: str, group: str) -> Scene:
    """A cluster for our own client, alone or among foreign ones."""
    cluster = clusters.of(where)
    return Scene(cluster.namesrv, cluster.broker_addr, topic, group)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark for all tests of a half; it takes seconds to start."""
    session = local_session("interop", master="local[2]", settings={"spark.driver.memory": "1g"})
    yield session
    session.stop()
