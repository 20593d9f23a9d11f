"""Disks that fail under a broker: what clients are told, and what is kept."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest
from peer import Peer, bodies

from gantrymq.base.errors import ConfigError
from gantrymq.base.files import read_file, save_text
from gantrymq.base.offload import InlineOffload
from gantrymq.base.saved import SavedFile
from gantrymq.broker.publishing.journal import load_writers
from gantrymq.broker.tables.registry import TopicTable, load_table
from gantrymq.broker.waiting.timer.checkpoint import TimerCheck, load_check, save_check
from gantrymq.model import GroupConfig
from gantrymq.replication.group.files import MemberFiles, MemberState
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

NUMBERS = [errno.ENOSPC, errno.EIO, errno.EROFS]
NAMES = ["full", "broken", "read-only"]
SAVED_SECONDS = 30.0


def failing(
    number: int, operation: str, part: str, hits: list[str] | None = None
) -> Callable[[str, str], OSError | None]:
    """A fault for one kind of operation on one kind of file; what it hits is noted."""

    def fault(name: str, path: str) -> OSError | None:
        if name != operation or part not in path:
            return None
        if hits is not None:
            hits.append(path)
        return OSError(number, "injected", path)

    return fault


def disk_of(cluster: Cluster) -> MemoryDisk:
    assert isinstance(cluster.disk, MemoryDisk)
    return cluster.disk


@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
@pytest.mark.parametrize("operation", ["pwrite", "sync"])
def test_a_table_that_cannot_be_saved_refuses_the_change(number: int, operation: str) -> None:
    """Nothing is changed in memory either, and the broker goes on."""

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            peer, disk = await Peer.to(cluster), disk_of(cluster)
            disk.fault = failing(number, operation, "topics.json")
            answer = await peer.call(17, topic="fresh", readQueueNums=4, writeQueueNums=4, perm=6)
            assert (1, True) == (answer.code, "cannot be saved" in (answer.remark or ""))
            assert cluster.broker().registry.topics.get("fresh") is None
            disk.fault = None
            answer = await peer.call(17, topic="fresh", readQueueNums=4, writeQueueNums=4, perm=6)
            assert 0 == answer.code

    simulate(story)


@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
def test_a_send_to_a_log_that_cannot_be_written_is_refused(number: int) -> None:
    """With a reason; offsets have no gap when the disk obeys again."""

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            peer, disk = await Peer.to(cluster), disk_of(cluster)
            assert 0 == (await peer.send("orders", b"before")).code
            disk.fault = failing(number, "pwrite", "commitlog")
            refused = await peer.send("orders", b"during")
            assert refused.code in (1, 14)
            assert refused.remark
            disk.fault = None
            assert "1" == (await peer.send("orders", b"after")).ext["queueOffset"]

    simulate(story)


@pytest.mark.parametrize(
    "part", ["consumerOffset.json", "delayOffset.json", "timercheck", "/config/"]
)
@pytest.mark.parametrize("operation", ["pwrite", "sync"])
def test_progress_that_cannot_be_saved_is_told_and_saved_later(
    caplog: Any, part: str, operation: str
) -> None:
    """The broker serves meanwhile; what was committed reaches the disk when it obeys again."""

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            peer, disk = await Peer.to(cluster), disk_of(cluster)
            assert 0 == (await peer.send("orders", b"one")).code
            await peer.send("orders", b"later", props="DELAY\x011\x02")
            await peer.send("orders", b"later", props="TIMER_DELAY_SEC\x011\x02")
            async with cluster.admin() as admin:
                await admin.update_group(GroupConfig(group_name="g"))
            hits: list[str] = []
            disk.fault = failing(errno.EIO, operation, part, hits)
            commit = {"consumerGroup": "g", "topic": "orders", "queueId": 0, "commitOffset": 1}
            assert 0 == (await peer.call(15, **commit)).code
            await asyncio.sleep(SAVED_SECONDS)
            assert 0 == (await peer.send("orders", b"two")).code
            assert hits
            assert "injected" in caplog.text
            disk.fault = None
            await asyncio.sleep(SAVED_SECONDS)
            (saved,) = [path for path in paths_of(disk) if path.endswith("/consumerOffset.json")]
            assert '"orders@g"' in read_file(disk, saved).decode()

    simulate(story)


def paths_of(disk: MemoryDisk) -> list[str]:
    return list(disk._names.files)


@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "index"])
def test_a_read_that_fails_is_an_error_answer(part: str) -> None:
    """To this request alone: the connection stays, and the same request succeeds later."""

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            peer, disk = await Peer.to(cluster), disk_of(cluster)
            await peer.send("orders", b"one", props="KEYS\x01k1\x02")
            await asyncio.sleep(SAVED_SECONDS)
            await cluster.stop_broker()
            await cluster.start_broker()
            peer = await Peer.to(cluster)

            async def ask() -> Any:
                if part == "index":
                    return await peer.call(12, topic="orders", key="k1", maxNum=9,
                                           beginTimestamp=0, endTimestamp=1 << 60)  # fmt: skip
                return await peer.pull("orders", 0)

            disk.fault = failing(errno.EIO, "pread", f"/{part}/")
            failed = await ask()
            assert 0 != failed.code
            assert failed.remark
            disk.fault = None
            assert [b"one"] == bodies(await ask())

    simulate(story)


@pytest.mark.parametrize("fault", ["flipped", "cut", "missing", "longer"])
def test_a_damaged_table_gives_way_to_its_backup(caplog: Any, fault: str) -> None:
    """With a word in the log; without a readable backup the start is refused."""
    disk, path = MemoryDisk(), "store/config/topics.json"
    table = '{"dataVersion":{"counter":1},"topicConfigTable":{"a":{"topicName":"a"}}}'
    save_text(disk, path, table)
    save_text(disk, path, table)
    spoil(disk, path, fault)

    assert ["a"] == list(load_table(disk, path, TopicTable).topic_config_table)
    assert (fault == "missing") == ("its backup is used" not in caplog.text)
    spoil(disk, f"{path}.bak", "cut")
    if fault != "missing":
        with pytest.raises(ConfigError, match="and its backup cannot be read"):
            load_table(disk, path, TopicTable)


def spoil(disk: MemoryDisk, path: str, fault: str) -> None:
    if fault == "missing":
        disk.delete(path)
    elif fault == "longer":
        disk.open(path).pwrite(b"}x", len(read_file(disk, path)))
    elif fault == "cut":
        disk.open(path).truncate(20)
    else:
        disk.flip_bit(path, 1, 5)  # the first quotation mark


@pytest.mark.parametrize("operation", ["pwrite", "sync"])
def test_a_text_that_could_not_be_saved_is_saved_by_the_next_save(operation: str) -> None:
    """Whoever saves is told; the old text stays until a new one is whole."""

    async def story() -> None:
        disk, path = MemoryDisk(), "store/config/publishing.json"
        file = SavedFile(disk, InlineOffload(), path)
        await file.save("old")
        disk.fault = failing(errno.ENOSPC, operation, path)
        with pytest.raises(OSError, match="injected"):
            await file.save("new")
        disk.fault = None
        assert b"old" == read_file(disk, path)
        await file.save("new")
        assert b"new" == read_file(disk, path)

    simulate(story)


@pytest.mark.parametrize("fault", ["flipped", "cut", "longer"])
def test_a_damaged_journal_gives_way_to_its_backup(caplog: Any, fault: str) -> None:
    """What was published is in the log as well; the journal says from where to read it."""
    disk, path = MemoryDisk(), "store/config/publishing.json"
    for _ in range(2):
        save_text(disk, path, '{"offset":0,"writers":{}}')
    spoil(disk, path, fault)

    load_writers(disk, path)
    assert "its backup is used" in caplog.text
    spoil(disk, f"{path}.bak", "cut")
    with pytest.raises(ConfigError, match="and its backup cannot be read"):
        load_writers(disk, path)


CHECK = TimerCheck(read_ms=1_700_000_000_000, offset=90, low=40, counter=7, saved_ms=5)


def test_no_bit_of_the_timer_progress_hides_a_waiting_message() -> None:
    """Whatever bit turns over, nothing before the first waiting message counts as done."""
    disk, path = MemoryDisk(), "store/config/timercheck"
    save_check(disk, path, CHECK)
    for at in range(92):
        for bit in range(8):
            disk.flip_bit(path, at, bit)
            assert load_check(disk, path).low <= CHECK.low
            disk.flip_bit(path, at, bit)
    assert CHECK == load_check(disk, path)


@pytest.mark.parametrize("size", [0, 20, 60, 512, 9000])
def test_a_cut_timer_file_is_read_as_far_as_it_goes(size: int) -> None:
    """Without its numbers everything is read again; a missing file is a new one."""
    disk, path = MemoryDisk(), "store/config/timercheck"
    save_check(disk, path, CHECK)
    disk.open(path).truncate(size)

    assert load_check(disk, path).low <= CHECK.low
    disk.delete(path)
    assert TimerCheck() == load_check(disk, path)


@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename"])
@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
def test_a_vote_that_cannot_be_saved_is_not_given(operation: str, number: int) -> None:
    """The error comes before anything relies on it, and the old vote is what is found."""
    disk = MemoryDisk()
    files = MemberFiles(disk, "store")
    files.save_state(MemberState(group="g", me="n0", term=1))
    disk.fault = failing(number, operation, "state.json")
    with pytest.raises(OSError, match="injected"):
        files.save_state(MemberState(group="g", me="n0", term=2, vote="n1"))
    disk.fault = None

    found = MemberFiles(disk, "store").load_state()
    assert found is not None
    assert (1, None) == (found.term, found.vote)


@pytest.mark.parametrize("name", ["state", "epochs"])
@pytest.mark.parametrize("fault", ["flipped", "cut", "missing", "longer"])
def test_a_member_does_not_take_part_with_damaged_files(name: str, fault: str) -> None:
    """A backup would be an older vote; the text says to start it empty."""
    disk = MemoryDisk()
    files = MemberFiles(disk, "store")
    for term in (1, 2):
        files.save_state(MemberState(group="g", me="n0", term=term))
        files.save_epochs(())
    spoil(disk, f"store/raft/{name}.json", fault)

    if name == "state" and fault == "missing":
        assert files.load_state() is None  # it counts as empty, and has no vote
        return
    read = files.load_state if name == "state" else lambda: files.load_log(0, 100)
    with pytest.raises(ConfigError, match=r"start (it|this member) empty"):
        read()
