"""The dashboard and the alert rules in deploy/ ask for metrics and labels that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gantrymq.metrics.metric import COMMON_LABELS, Metric
from gantrymq.metrics.table import METRICS

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())
BY_NAME = {metric.name: metric for metric in METRICS}
OF_PROMETHEUS = {"up", "instance", "job"}
FUNCTIONS = {
    "rate", "increase", "sum", "max", "min", "histogram_quantile", "max_over_time",
    "min_over_time", "label_values",
}  # fmt: skip
WORDS = {"by", "on", "and", "unless"}
METRIC = re.compile(r"\b((?:rocketmq|gantrymq)_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")
MATCHER = re.compile(r'^\w+(?:=|!=|=~|!~)"[^"]*"$')


def panels() -> Iterator[dict[str, Any]]:
    return (panel for panel in DASHBOARD["panels"] if panel["type"] != "row")


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def expressions() -> list[tuple[str, str]]:
    """Each expression with the text that shows its labels."""
    found = [(t["expr"], t["legendFormat"]) for panel in panels() for t in panel["targets"]]
    found += [
        (var["query"]["query"], "")
        for var in DASHBOARD["templating"]["list"]
        if var["type"] == "query"
    ]
    return found + [(rule["expr"], rule["annotations"]["summary"]) for rule in rules()]


def metric_of(name: str) -> Metric:
    """The declared metric of a sample's name."""
    if name in BY_NAME:
        assert BY_NAME[name].kind != "histogram", f"{name} has no samples under this name"
        return BY_NAME[name]
    base, _, part = name.rpartition("_")
    assert base in BY_NAME, f"there is no metric {name}"
    assert (BY_NAME[base].kind, part in ("bucket", "sum", "count")) == ("histogram", True), name
    return BY_NAME[base]


@pytest.mark.parametrize(("text", "legend"), expressions())
def test_metrics_and_labels_exist(text: str, legend: str) -> None:
    """
    Every name is in the table, every label is one of its own or of all, and what is shown is what
    the expression keeps.
    """
    labels = {*COMMON_LABELS, *OF_PROMETHEUS}
    for name, inside in METRIC.findall(text):
        metric = metric_of(name)
        own = {*COMMON_LABELS, *metric.labels}
        if name.endswith("_bucket"):
            own.add("le")
        for matcher in filter(None, inside.split(",")):
            assert MATCHER.match(matcher), matcher
            assert re.split(r"=|!", matcher)[0] in own, (name, matcher)
        labels |= own
    grouped = {label.strip() for found in GROUPED.findall(text) for label in found.split(",")}
    assert grouped <= labels
    if " by (" in text and " on (" not in text:
        labels = grouped
    elif re.match(r"(sum|max|min)\(", text):
        labels = set()
    assert set(LEGEND.findall(legend)) - {"value"} <= labels


@pytest.mark.parametrize("text", [text for text, _ in expressions()])
def test_expressions_are_well_formed(text: str) -> None:
    """
    Brackets close, functions are known, counters are read through a rate, and so are the classes of
    histograms.
    """
    plain = re.sub(r'"[^"]*"', '""', text)
    open_ones: list[str] = []
    for sign in plain:
        if sign in "([{":
            open_ones.append(sign)
        elif sign in ")]}":
            assert {")": "(", "]": "[", "}": "{"}[sign] == open_ones.pop(), text
    assert not open_ones, text
    for name in re.findall(r"\b([a-z_]+)\s*\(", plain):
        assert name in FUNCTIONS | WORDS, name
    for match in METRIC.finditer(plain):
        metric = metric_of(match[1])
        before = plain[: match.start()]
        if metric.kind == "gauge":
            assert not before.endswith(("rate(", "increase(")), text
        elif not before.endswith("label_values("):
            assert before.endswith(("rate(", "increase(")), text
            assert re.match(r"\[[^\]]+\]", plain[match.end() :]), text


def test_every_alert_says_what_how_bad_and_for_whom() -> None:
    """
    Names are unique, severities are two, and every expression compares with something.
    """
    names = [rule["alert"] for rule in rules()]

    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert re.search(r"[<>]|==", rule["expr"])
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "0m"))


def test_panels_have_ids_places_and_titles_of_their_own() -> None:
    """
    They neither overlap nor stand outside of the 24 columns.
    """
    places = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in places, panel["title"]
                places.add((x, y))
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert len({panel["title"] for panel in panels()}) == len(list(panels()))
