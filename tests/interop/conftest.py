"""One cluster for the whole suite, and fresh names for every test.

`INTEROP_AGAINST=4.9.7` (or `5.3.3`) runs the tests of the clients against that release of
RocketMQ in place of ours: what passes there is a fact about RocketMQ, not a wish of ours.
"""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
import toolchain
from clients import JavaClient
from real import OurCluster, RealCluster

AGAINST = os.environ.get("INTEROP_AGAINST", "ours")
# Refused by our broker by name; the file says which and why it is here.
collect_ignore = ["test_java_ahead.py"] if AGAINST == "ours" else []
_numbers = itertools.count(1)


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
def cluster(programs: None) -> Iterator[OurCluster | RealCluster]:
    """The cluster that the clients talk to."""
    with OurCluster() if AGAINST == "ours" else RealCluster(AGAINST) as servers:
        yield servers


@pytest.fixture
def namesrv(cluster: OurCluster | RealCluster) -> str:
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
