"""A real process, killed in the middle of its work."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from storekit import message, open_store, put, read_queue, tiny

from gantrymq.base.disk import LockedError, OsDisk

WRITER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from gantrymq.base.disk import OsDisk
from gantrymq.store import HelperSyncer
from storekit import message, open_store, put, tiny

async def main():
    config = tiny(sys.argv[2], flush=sys.argv[3], queue_write_interval_ms=5, segment_bytes=1 << 16,
                  checkpoint_interval_ms=20, flush_interval_ms=10)
    store = await open_store(OsDisk(), config, syncer=HelperSyncer())
    serial = 0
    while True:
        batch = [message(body=b"%d" % (serial + n), unique=str(serial + n)) for n in range(10)]
        serial += 10
        await put(store, *batch)
        print(serial, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_killed_process_keeps_everything_it_acknowledged(tmp_path: Path, flush: str) -> None:
    """Whatever the flush mode: the system has it, and the next start finds it."""
    directory = str(tmp_path / "store")
    here = str(Path(__file__).parents[1])
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, here, directory, flush], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    acknowledged = 0
    for _ in range(60):
        acknowledged = int(writer.stdout.readline())

    async def recover() -> None:
        config = tiny(directory, flush=flush, segment_bytes=1 << 16)
        with pytest.raises(LockedError, match=str(writer.pid)):
            await open_store(OsDisk(), config)
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read() if writer.stdout else b""
        writer.wait()
        heard = int(rest.split()[-1]) if rest.split() else acknowledged
        store = await open_store(OsDisk(), config)
        found = [int(one.body) for one in await read_queue(store, "orders", 0)]
        assert found == list(range(len(found)))
        assert heard <= len(found) <= heard + 10
        (after,) = await put(store, message())
        assert after.queue_offset == len(found)
        await store.close()

    asyncio.run(asyncio.wait_for(recover(), 60))
