"""Which slaves count as in sync."""

from gantrymq.replication.ha.in_sync import InSyncSlaves, SlaveProgress


def slave(acknowledged: int = 100, heard_at: float = 0.0) -> SlaveProgress:
    """A slave that was sent all it acknowledges."""
    return SlaveProgress("127.0.0.1:1", acknowledged, acknowledged, heard_at)


def test_only_slaves_that_joined_count() -> None:
    """The acknowledgement of a stranger copies nothing."""
    slaves, stranger = InSyncSlaves(), slave()
    slaves.acknowledge(stranger, 500, 1.0)
    assert slaves.copied == 0
    assert slaves.in_sync(100, 1.0) == []
    slaves.join(stranger)
    slaves.acknowledge(stranger, 600, 1.0)
    assert slaves.copied == 600
    assert slaves.in_sync(600, 1.0) == [stranger]


def test_what_a_slave_brings_along_is_not_acknowledged() -> None:
    """A slave that joins with a long log has not acknowledged anything yet."""
    slaves = InSyncSlaves()
    slaves.join(slave(acknowledged=10_000))
    assert slaves.copied == 0


def test_a_slave_too_far_behind_is_not_in_sync() -> None:
    """It counts again when it has caught up."""
    slaves, one = InSyncSlaves(behind_bytes_max=50), slave(100)
    slaves.join(one)
    assert slaves.in_sync(150, 0.0) == [one]
    assert slaves.in_sync(151, 0.0) == []
    slaves.acknowledge(one, 101, 0.0)
    assert slaves.in_sync(151, 0.0) == [one]


def test_a_silent_slave_is_not_in_sync() -> None:
    """Fifteen seconds without an acknowledgement are the most."""
    slaves, one = InSyncSlaves(), slave(heard_at=10.0)
    slaves.join(one)
    assert slaves.in_sync(100, 25.0) == [one]
    assert slaves.in_sync(100, 25.1) == []


def test_what_was_copied_stays_copied() -> None:
    """A slave that leaves takes nothing back, and the one furthest ahead decides."""
    slaves, one, other = InSyncSlaves(), slave(), slave()
    slaves.join(one)
    slaves.join(other)
    slaves.acknowledge(one, 300, 0.0)
    slaves.acknowledge(other, 200, 0.0)
    assert slaves.copied == 300
    slaves.leave(one)
    assert slaves.copied == 300
    assert slaves.in_sync(300, 0.0) == [other]
