"""Prometheus' text format: what its own parser reads is what was counted."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gantrymq.base.histogram import Histogram
from gantrymq.metrics.metric import Metric, Row
from gantrymq.metrics.text import MetricsText

COUNTER = Metric("made_total", "counter", "Things\nmade \\ so far", ("topic", "kind"))
GAUGE = Metric("waiting", "gauge", "Things that wait")
TIMES = Metric("took_seconds", "histogram", "Times", ("topic",), "seconds")
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


def page(*added: tuple[Metric, list[Row]], series_max: int = 1_000, **common: str) -> str:
    text = MetricsText(common, series_max)
    for metric, rows in added:
        text.add(metric, rows)
    return b"".join(text.parts()).decode()


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """All samples, by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(topic=NAMES, kind=NAMES, cluster=NAMES.filter(bool))
def test_labels_come_back_as_they_were(topic: str, kind: str, cluster: str) -> None:
    """Whatever characters a name has, those of the format included."""
    text = page((COUNTER, [((topic, kind), 3)]), cluster=cluster)

    labels = (("cluster", cluster), ("kind", kind), ("topic", topic))
    assert {("made_total", labels): 3.0} == read(text)


def test_a_metric_stands_together_with_its_help_and_kind() -> None:
    """Also when its samples came between those of others; the help is one line."""
    text = page((COUNTER, [(("a", "x"), 1)]), (GAUGE, [((), 2)]), (COUNTER, [(("b", "x"), 4)]))

    assert [
        "# HELP made_total Things\\nmade \\\\ so far",
        "# TYPE made_total counter",
        'made_total{topic="a",kind="x"} 1',
        'made_total{topic="b",kind="x"} 4',
        "# HELP waiting Things that wait",
        "# TYPE waiting gauge",
        "waiting 2",
    ] == text.splitlines()


def test_classes_of_a_histogram_add_up() -> None:
    """Each class counts the ones below; a value on a bound belongs to the class that it ends."""
    times = Histogram([0.5, 1.0])
    for value, often in ((0.1, 2), (0.5, 1), (1.0, 1), (7.0, 3)):
        times.observe(value, often)

    found = read(page((TIMES, [(("a",), times.shown)]), node="n"))

    own = (("node", "n"), ("topic", "a"))
    assert [3.0, 4.0, 7.0] == [
        found["took_seconds_bucket", (("le", le), *own)] for le in ("0.5", "1.0", "+Inf")
    ]
    assert 7.0 == found["took_seconds_count", own]
    assert round(0.2 + 0.5 + 1.0 + 21.0, 6) == round(found["took_seconds_sum", own], 6)


def test_series_beyond_the_limit_are_left_out_and_counted() -> None:
    """Metric by metric, over all pieces."""
    text = MetricsText({}, 3)
    for at in (0, 2, 4):
        text.add(COUNTER, [((str(at), "x"), 1), ((str(at + 1), "x"), 1)])
    text.add(GAUGE, [((), 1)])

    assert {COUNTER.name: 3} == text.cut
    assert 4 == len(read(b"".join(text.parts()).decode()))


def test_a_metric_without_samples_is_not_named() -> None:
    """A help without a line would look like a metric that is zero."""
    assert "" == page((COUNTER, []))
