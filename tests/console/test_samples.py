"""Samples and alarms of a cluster: taken in the background, shown by the API and as pages."""

from pathlib import Path

import pytest
from consolekit import NAME, Site, console, until
from consumekit import read, send

from gantrymq.console.sampling import sampler
from gantrymq.testing.threaded import GantryCluster

SAMPLES, ALARMS = f"/clusters/{NAME}/samples", f"/clusters/{NAME}/alarms"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all groups with every sample."""
    monkeypatch.setattr(sampler, "LAG_SECONDS", 5.0)


def known(site: Site, kind: str, label: str, **question: str) -> list[float]:
    """The known values of a line."""
    found = site.api("GET", SAMPLES, kind=kind, **question)
    lines = {each["label"]: each["values"] for each in found["series"]}
    return [value for value in lines.get(label, []) if value is not None]


def test_rates_and_lag_are_sampled(gantry: GantryCluster) -> None:
    """A console that runs has rates, disks and lag of its cluster, by group, and as a table."""
    gantry.create_topic("orders", 1)
    send(gantry.namesrv, "orders", 2)
    read(gantry.namesrv, "orders", "billing", 2)
    send(gantry.namesrv, "orders", 5)
    with console(gantry) as site:
        lag = until(lambda: known(site, "lag", "lag"))
        of_group = until(lambda: known(site, "group", "lag", name="billing"))
        rates = site.api("GET", SAMPLES, kind="rates")
        of_broker = site.api("GET", SAMPLES, kind="rates", name="broker-a")
        groups = until(lambda: known(site, "groups", "billing", period="day"))
        disks = until(lambda: known(site, "disk", "broker-a:0"))
        table = site.page(f"/c/{NAME}/samples?kind=group&name=billing")
        overview = site.page(f"/c/{NAME}/overview?period=day&name=broker-a")

    assert (5.0, 5.0, 5.0) == (lag[-1], of_group[-1], groups[-1])
    assert 0 < disks[-1] < 1
    for each in (rates, of_broker):
        assert ["in", "out"] == [line["label"] for line in each["series"]]
        assert (10_000, 360) == (each["stepMs"], len(each["series"][0]["values"]))
        assert "" == each["trouble"]
    assert '<td class="figure">5.0</td>' in table
    assert "kind=rates&amp;period=day&amp;name=broker-a" in overview


def test_a_cluster_that_is_away_is_a_gap(gantry: GantryCluster, tmp_path: Path) -> None:
    """Without an answer there is no value and the reason is told; a later console goes on."""
    with console(gantry, data=tmp_path) as site:
        before = until(lambda: known(site, "rates", "in"))
        gantry.call(gantry.cluster.stop_broker())
        trouble = until(lambda: site.api("GET", SAMPLES, kind="rates")["trouble"])
        after = known(site, "rates", "in")
    with console(gantry, data=tmp_path) as site:
        again = known(site, "rates", "in")
        gantry.call(gantry.cluster.start_broker())

    assert "broker" in trouble
    assert len(before) <= len(after) <= len(before) + 1
    assert again == after


def test_samples_of_nothing(gantry: GantryCluster) -> None:
    """A group or topic has to be named; one that nobody knows has gaps only."""
    with console(gantry) as site:
        unnamed = site.call("GET", SAMPLES, kind="group")
        wrong = site.call("GET", SAMPLES, kind="weather")
        nobody = known(site, "topic", "sent", name="nothing")
        elsewhere = site.call("GET", "/clusters/nowhere/samples", kind="lag")

    assert (400, 400, 404) == (unnamed.status, wrong.status, elsewhere.status)
    assert [] == nobody


def test_alarms(gantry: GantryCluster) -> None:
    """A broker that does not answer is an alarm, with its begin; first there is none."""
    with console(gantry) as site:
        first = until(lambda: (found := site.api("GET", ALARMS))["atMs"] and found)
        page = site.page(f"/c/{NAME}/alarms")

    assert ([], [], "") == (first["alarms"], first["ended"], first["trouble"])
    assert 10_000 == first["limits"]["waiting"]
    assert "No alarm." in page
