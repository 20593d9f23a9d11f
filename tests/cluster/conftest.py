"""The same tests in two worlds: memory and virtual time, and real TCP."""

import asyncio
from typing import Any

import pytest
from peer import Run, Work

from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

pytest.register_assert_rewrite(
    "effects", "effects_keeping", "effects_limits", "effects_reading", "effects_sending"
)

SECONDS_MAX = 60


@pytest.fixture(params=["memory", "tcp"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run `async def work(cluster)`; options go to the cluster."""

    def run_in_world(work: Work, **options: Any) -> None:
        async def main() -> None:
            async with Cluster(memory=request.param == "memory", **options) as cluster:
                await work(cluster)

        async def bounded() -> None:
            async with asyncio.timeout(SECONDS_MAX):
                await main()

        if request.param == "memory":
            simulate(main)
        else:
            asyncio.run(bounded())

    return run_in_world
