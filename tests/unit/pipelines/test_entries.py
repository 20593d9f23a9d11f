"""The entries of the pipelines: one shape, whichever the pipeline."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.pipelines.archive import ArchiveRun, run_archive
from gantrymq.pipelines.audit import AuditRun, run_audit
from gantrymq.pipelines.replay import Journal, ReplayRun, run_replay
from gantrymq.pipelines.report import ReportRun, run_report

ENTRIES = [
    pytest.param(run_archive, ArchiveRun, id="archive"),
    pytest.param(run_replay, ReplayRun, id="replay"),
    pytest.param(run_report, ReportRun, id="report"),
    pytest.param(run_audit, AuditRun, id="audit"),
]


@pytest.mark.parametrize("entry, run", ENTRIES)
def test_every_pipeline_is_called_the_same_way(entry: Callable[..., Any], run: type) -> None:
    """The session, then one frozen value; how it is watched and stopped is said by name."""
    parameters = inspect.signature(entry).parameters

    assert ["spark", "run", "progress"] == list(parameters)[:3]
    assert {"progress", "stop"} >= set(parameters) - {"spark", "run"}
    assert parameters["run"].annotation is run
    assert is_dataclass(run)
    assert run.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(field.kw_only for field in fields(run))


def test_a_run_of_a_replay_has_a_request_or_an_id() -> None:
    """Neither, and both, are refused before Spark is started."""
    with pytest.raises(ConfigError, match="a request, or the id"):
        ReplayRun(namesrv="a:1", journal=Journal("nowhere"))
