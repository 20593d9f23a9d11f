"""A whole trial with real processes, on loopback addresses: a good one, and one with sabotage."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cluster import Cluster
from chaos.disk import InjectedDisk
from chaos.faults import FAULTS, Harm
from chaos.loopback import Loopback
from chaos.modes import MODES
from chaos.promises import broken_promises
from chaos.trial import Trial

MODE = MODES["sync-master"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    made = Cluster(
        MODE, lambda hosts: Loopback(hosts, 1), folder, java=None, make_disk=InjectedDisk
    )
    yield made
    made.close()


def test_a_killed_master_takes_nothing(cluster: Cluster) -> None:
    """Messages were sent, some failed, and none that was acknowledged is missing."""
    result = Trial(cluster, FAULTS["leader-kill"], 1, time.sleep).run(1.0)

    assert [] == broken_promises(MODE, result)
    assert result.verdict.acknowledged > 50
    assert result.verdict.failed + result.verdict.unknown > 0
    assert result.verdict.downtime.longest > 1.0


def test_a_master_that_forgets_is_found_out(
    cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of both brokers are deleted while they are down: what was acknowledged is lost."""
    undo = cluster.undo

    def undo_and_forget(harm: Harm) -> None:
        for name in ("master", "slave"):
            cluster.nodes[name].kill()
            for part in ("commitlog", "consumequeue", "index", "checkpoint"):
                shutil.rmtree(folder / name / "disk" / "store" / part, ignore_errors=True)
        undo(Harm(harm.action, ("master", "slave")))

    monkeypatch.setattr(cluster, "undo", undo_and_forget)

    result = Trial(cluster, FAULTS["leader-kill"], 1, time.sleep).run(1.0)

    broken = " ".join(broken_promises(MODE, result))
    assert len(result.verdict.lost) > 20
    assert "broken: acknowledged is kept; " in broken
    assert "broken: acknowledged is kept, without the master's machine; " in broken
