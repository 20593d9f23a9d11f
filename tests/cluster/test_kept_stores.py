"""Stores that earlier releases wrote are opened by this one."""

import asyncio
import json
from pathlib import Path

import pytest
from keptstores import COUNT, GROUP, QUEUES, READ, TOPIC, KeptBroker, body, read
from storekeeping import STORES, unpack_store

from gantrymq import Admin
from gantrymq.store.audit.whole import audit_store

RELEASES = ["gantrymq-0.1.0"]
BEFORE_VERSIONS = "before versions"
"""The store of a release that did not know `store.json`."""


def test_every_kept_store_is_tried() -> None:
    """A store that was packed and is not opened here proves nothing."""
    assert RELEASES == sorted(path.name.removesuffix(".tar.xz") for path in STORES.glob("gantry*"))


@pytest.mark.parametrize("release", [*RELEASES, BEFORE_VERSIONS])
def test_a_store_of_an_earlier_release_opens(tmp_path: Path, release: str) -> None:
    """Messages, what waits, and groups where they were; afterwards it is sound."""
    name = RELEASES[0] if release == BEFORE_VERSIONS else release
    store = unpack_store(name, tmp_path / "store")
    assert [] == audit_store(str(store)).findings
    if release == BEFORE_VERSIONS:
        for path in store.glob("store.json*"):
            path.unlink()

    async def look(namesrv: str) -> None:
        async with Admin(namesrv) as admin:
            progress = (await admin.consume_stats(GROUP, TOPIC)).queues.values()
        assert QUEUES == len(progress)
        assert READ <= sum(row.consumer_offset for row in progress) < COUNT
        found = await read(namesrv, "others", COUNT + 1)
        assert {body(number) for number in range(COUNT)} | {"agreed"} == found

    with KeptBroker(store, tmp_path / "logs") as broker:
        asyncio.run(look(broker.namesrv))

    assert [] == audit_store(str(store)).findings
    assert 1 == json.loads((store / "store.json").read_text())["format"]
