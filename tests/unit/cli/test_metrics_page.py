"""docs/metrics.md says what servers tell, and what of RocketMQ's is not here."""

from pathlib import Path

from gantrymq.cli.pages.metrics import TITLES, page
from gantrymq.metrics.metric import ROCKETMQ
from gantrymq.metrics.table import DIFFERENCES, LEFT_OUT, METRICS

ROOT = Path(__file__).parents[3]


def test_the_page_is_printed_from_the_code() -> None:
    """
    After a change: `python -m gantrymq.cli.pages.metrics > docs/metrics.md`.
    """
    assert (ROOT / "docs" / "metrics.md").read_text() == page()


def test_every_metric_is_declared_once_and_belongs_to_a_switch() -> None:
    """
    What is left out is not there, and differences are about metrics that RocketMQ has.
    """
    names = [metric.name for metric in METRICS]

    assert len(set(names)) == len(names)
    assert not LEFT_OUT.keys() & set(names)
    assert TITLES.keys() == {metric.switch for metric in METRICS}
    assert all(metric.name.startswith(ROCKETMQ) for metric in DIFFERENCES)
