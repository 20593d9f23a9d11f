"""Syncing on a thread: in order, first error reported, nothing lost when it is closed."""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gantrymq.base.disk import OsDisk, OsFile
from gantrymq.kernel import GRADE, SyncThread, syncing
from gantrymq.store.log import syncer as module
from gantrymq.store.log.syncer import FILES_MAX, HelperSyncer, ThreadSyncer, best_syncer

SECONDS_MAX = 20


@pytest.fixture(params=["in use", "pure"])
def syncer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ThreadSyncer:
    """A syncer on each of the two threads."""
    thread: Any = SyncThread if request.param == "in use" else syncing.SyncThread
    monkeypatch.setattr(module, "SyncThread", thread)
    return ThreadSyncer()


@pytest.fixture
def make_file(tmp_path: Path) -> Iterator[Callable[[], OsFile]]:
    files: list[OsFile] = []

    def make() -> OsFile:
        file = OsDisk().open(str(tmp_path / str(len(files))), create=True)
        file.pwrite(b"x" * 5000, 0)
        files.append(file)
        return file

    yield make
    for file in files:
        file.close()


def unsyncable() -> OsFile:
    """A descriptor that no system syncs."""
    reading, writing = os.pipe()
    os.close(writing)
    return OsFile(reading, "pipe")


def run(work: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


async def synced(syncer: ThreadSyncer, files: list[OsFile]) -> OSError | None:
    future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
    syncer.sync(files, future.set_result)
    assert not future.done(), "never called back from within"
    return await future


def test_a_sync_is_reported_on_the_loop(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    The result of a sync is reported on the event loop.
    """

    async def work() -> None:
        assert await synced(syncer, [make_file(), make_file()]) is None
        assert await synced(syncer, []) is None
        syncer.close()

    run(work)


def test_syncs_under_way_are_reported_in_order(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    Several syncs in progress are reported in the order of their requests.
    """

    async def work() -> None:
        file, order, last = make_file(), list[int](), asyncio.Event()

        def done(number: int, error: OSError | None) -> None:
            assert error is None
            order.append(number)
            if number == 199:
                last.set()

        for number in range(200):
            syncer.sync([file], lambda error, number=number: done(number, error))  # type: ignore[misc]
        await last.wait()
        assert order == list(range(200))
        syncer.close()

    run(work)


def test_the_first_error_is_reported_and_the_others_are_synced(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    The first error of a request is reported, and the syncer goes on working.
    """

    async def work() -> None:
        error = await synced(syncer, [make_file(), unsyncable(), make_file()])
        assert error is not None
        assert error.errno == errno.EINVAL
        assert await synced(syncer, [make_file()]) is None
        syncer.close()

    run(work)


def test_more_files_than_a_request_holds_are_synced_in_turns(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    A request with more files than one message to the thread holds is split.
    """

    async def work() -> None:
        files = [make_file() for _ in range(FILES_MAX + 3)]
        assert await synced(syncer, files) is None
        error = await synced(syncer, [*files, unsyncable()])
        assert error is not None
        syncer.close()

    run(work)


def test_a_file_that_is_closed_meanwhile_does_no_harm(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    A file may be closed after its sync was requested; a closed one is reported as EBADF.
    """

    async def work() -> None:
        future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        file = make_file()
        syncer.sync([file], future.set_result)
        file.close()
        assert await future is None
        error = await synced(syncer, [file])
        assert error is not None
        assert error.errno == errno.EBADF
        syncer.close()

    run(work)


def test_what_is_under_way_at_the_end_counts_as_failed(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    `close` reports syncs in progress as cancelled, and the syncer can be used again.
    """

    async def work() -> None:
        heard: list[OSError | None] = []
        syncer.sync([make_file()], heard.append)
        syncer.close()
        assert [error and error.errno for error in heard] == [errno.ECANCELED]
        syncer.close()  # a second time is fine
        assert await synced(syncer, [make_file()]) is None  # and so is going on
        syncer.close()

    run(work)


def test_no_descriptor_is_left_behind(
    syncer: ThreadSyncer, make_file: Callable[[], OsFile]
) -> None:
    """
    The syncer closes all descriptors that it duplicated.
    """

    async def work() -> None:
        file = make_file()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            await synced(syncer, [file])
        await synced(syncer, [unsyncable()])
        syncer.close()
        assert len(os.listdir("/proc/self/fd")) == before

    run(work)


def test_a_broker_gets_the_syncer_that_suits_its_kernel() -> None:
    """
    A broker uses the thread with the compiled kernel and the helper process without it.
    """
    expected = ThreadSyncer if GRADE == "compiled" else HelperSyncer

    assert type(best_syncer()) is expected
