"""Settings of flushing, retention, full disks and registration."""

import asyncio
from datetime import datetime

from effects import Trial, effect
from peer import Peer

from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.testing.clock import EPOCH_MS
from gantrymq.testing.cluster import HOST

NO_SERVICE, NO_TOPIC = 14, 17
FILE_BYTES = 64 * 1024
FILES = 6
HOURS = ";".join(f"{hour:02d}" for hour in range(24))
ANOTHER_HOUR = f"{(datetime.fromtimestamp(EPOCH_MS / 1000).hour + 12) % 24:02d}"  # noqa: DTZ006
SOME_HOURS_MS = 4 * 3_600_000
REGISTER = 103


# flushing


async def _is_flushed(trial: Trial, within: float) -> bool:
    """Whether a message is on disk some time after it was answered.

    A checkpoint flushes as well, ten seconds after the last: trials are quicker than that.
    """
    await trial.peer.send("t", b"x")
    await asyncio.sleep(within)
    return trial.store.flushed.value == trial.store.log_max


LAZY = {
    "flush_interval_commit_log": 100,
    "flush_commit_log_least_pages": 1_000,
    "flush_commit_log_thorough_interval": SOME_HOURS_MS,
}


@effect(
    "flushIntervalCommitLog",
    **{**LAZY, "flush_commit_log_least_pages": 0, "flush_interval_commit_log": SOME_HOURS_MS},
)
async def flushes_follow_sooner(trial: Trial) -> None:
    """The pause of hours that has begun is over."""
    assert not await _is_flushed(trial, 2)
    await trial.change(flushIntervalCommitLog=500)
    assert await _is_flushed(trial, 1)


@effect("flushCommitLogLeastPages", **LAZY)
async def fewer_pages_are_flushed(trial: Trial) -> None:
    """A page that waits is enough."""
    assert not await _is_flushed(trial, 2)
    await trial.change(flushCommitLogLeastPages=0)
    assert await _is_flushed(trial, 1)


@effect("flushCommitLogThoroughInterval", **LAZY)
async def everything_is_flushed_now_and_then(trial: Trial) -> None:
    """However few pages there are."""
    assert not await _is_flushed(trial, 2)
    await trial.change(flushCommitLogThoroughInterval=1_000)
    assert await _is_flushed(trial, 1.5)


# files that go


RIPE = {
    "store_profile": "rocketmq",
    "mapped_file_size_commit_log": FILE_BYTES,
    "file_reserved_time": 0,
    "delete_when": HOURS,
}
"""Every file may go at once, unless an option says otherwise."""


async def _files_after(trial: Trial, wait: float) -> int:
    await asyncio.sleep(wait)
    return int(trial.store.usage["log_files"])


async def _fill(trial: Trial) -> None:
    """Six files, all but the last of them behind a checkpoint."""
    for _ in range(FILES):
        assert 0 == (await trial.peer.send("t", b"x" * 40_000)).code
    assert FILES == await _files_after(trial, 25)


@effect("fileReservedTime", **{**RIPE, "file_reserved_time": 72})
async def messages_are_kept_for_hours(trial: Trial) -> None:
    """For three days, then not even for one hour."""
    await _fill(trial)
    await trial.change(fileReservedTime=0)
    assert 1 == await _files_after(trial, 11)


@effect("deleteWhen", **{**RIPE, "delete_when": ANOTHER_HOUR})
async def files_go_at_their_hour(trial: Trial) -> None:
    """Half a day from now, then at any hour."""
    await _fill(trial)
    await trial.change(deleteWhen=HOURS)
    assert 1 == await _files_after(trial, 11)


@effect("deleteFileBatchMax", **{**RIPE, "delete_when": ANOTHER_HOUR})
async def so_many_files_go_at_once(trial: Trial) -> None:
    """Two at each look, then all that is left."""
    await _fill(trial)
    await trial.change(deleteFileBatchMax=2, deleteWhen=HOURS)
    assert FILES - 2 == await _files_after(trial, 10.1)
    await trial.change(deleteFileBatchMax=10)
    assert 1 == await _files_after(trial, 10.1)


@effect("cleanResourceInterval", **{**RIPE, "clean_resource_interval": SOME_HOURS_MS})
async def looks_follow_sooner(trial: Trial) -> None:
    """The pause of hours that has begun is over."""
    await _fill(trial)
    await trial.change(cleanResourceInterval=1_000)
    assert 1 == await _files_after(trial, 1.5)


def _make_half_full(trial: Trial) -> None:
    disk = trial.disk
    disk.capacity = 1 << 40
    disk.capacity = 2 * int(disk.used_ratio("/") * disk.capacity)
    assert 0.5 == round(disk.used_ratio("/"), 2)


@effect("diskMaxUsedSpaceRatio", **{**RIPE, "delete_when": ANOTHER_HOUR})
async def a_full_disk_needs_no_hour(trial: Trial) -> None:
    """Files past their time go before their hour."""
    await _fill(trial)
    _make_half_full(trial)
    assert FILES == await _files_after(trial, 21)
    await trial.change(diskMaxUsedSpaceRatio=40)
    assert 1 == await _files_after(trial, 11)


@effect("diskSpaceCleanForciblyRatio", **{**RIPE, "file_reserved_time": 72})
async def a_fuller_disk_needs_no_age(trial: Trial) -> None:
    """Files go before their time, until the disk is less full."""
    await _fill(trial)
    _make_half_full(trial)
    assert FILES == await _files_after(trial, 21)
    await trial.change(diskSpaceCleanForciblyRatio=45)
    assert FILES > await _files_after(trial, 11)


@effect("diskSpaceWarningLevelRatio", **{**RIPE, "file_reserved_time": 72})
async def the_fullest_disk_takes_nothing(trial: Trial) -> None:
    """The very next message is refused, and the one behind the next change is stored."""
    await _fill(trial)
    _make_half_full(trial)
    codes = []
    for ratio in (90, 40, 60):
        await trial.change(diskSpaceWarningLevelRatio=ratio)
        codes.append((await trial.peer.send("t", b"x")).code)
    assert [0, NO_SERVICE, 0] == codes


# name servers


@effect("namesrvAddr", nameservers=2)
async def other_name_servers_are_told(trial: Trial) -> None:
    """The one that is no longer named forgets the broker."""
    await trial.create("t")
    await asyncio.sleep(1)
    peers = [await Peer.to_namesrv(trial.cluster, number) for number in (0, 1)]
    addresses = trial.cluster.namesrv.split(";")
    for named in (1, 0):
        await trial.change(namesrvAddr=addresses[named])
        await asyncio.sleep(1)
        codes = [(await peer.call(105, topic="t")).code for peer in peers]
        assert (0, NO_TOPIC) == (codes[named], codes[1 - named])


class Registrar:
    """Stands where a name server would, and counts registrations."""

    def __init__(self, *, answers: bool) -> None:
        self._answers, self.count = answers, 0

    def hear(self, connection: Connection, command: Command) -> None:
        self.count += command.code == REGISTER
        if self._answers or command.code != REGISTER:
            connection.reply(command)

    async def listen(self, trial: Trial) -> str:
        network = trial.cluster.network
        port = network.free_port(HOST)
        await network.listen(HOST, port, lambda: Connection(self.hear))
        return f"{HOST}:{port}"

    async def heard(self, within: float) -> int:
        self.count = 0
        await asyncio.sleep(within)
        return self.count


@effect("registerNameServerPeriod", register_name_server_period=60_000)
async def a_broker_registers_more_often(trial: Trial) -> None:
    """Once a minute, then every ten seconds, without the rest of the minute."""
    registrar = Registrar(answers=True)
    await trial.change(namesrvAddr=await registrar.listen(trial))
    await asyncio.sleep(1)
    assert 0 == await registrar.heard(45)
    await trial.change(registerNameServerPeriod=10_000)
    await asyncio.sleep(1)  # the registration that the change brings about is over
    assert 1 == await registrar.heard(12)
    assert 3 == await registrar.heard(30)


@effect("registerBrokerTimeoutMills", register_broker_timeout_mills=57_000)
async def a_silent_name_server_is_tried_again(trial: Trial) -> None:
    """Three seconds after a minute, then three seconds after a second."""
    registrar = Registrar(answers=False)
    await trial.change(namesrvAddr=await registrar.listen(trial))
    await asyncio.sleep(1)
    assert 1 == await registrar.heard(60)
    await trial.change(registerBrokerTimeoutMills=1_000)
    await asyncio.sleep(60)
    assert 10 == await registrar.heard(40)
