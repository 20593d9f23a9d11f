"""The console answers over HTTP: pages, and the API that they use."""

from consolekit import NAME, console

from gantrymq.testing.threaded import GantryCluster


def test_overview(gantry: GantryCluster) -> None:
    """The overview shows every broker, by the API and as a page."""
    with console(gantry) as site:
        members = site.api("GET", f"/clusters/{NAME}/members")["members"]
        page = site.page(f"/c/{NAME}/overview")

    assert ["broker-a"] == [each["broker"] for each in members]
    assert "broker-a" in page


def test_entry(gantry: GantryCluster) -> None:
    """The entry leads to the overview of the first cluster."""
    with console(gantry) as site:
        answer = site.ask("GET", "/")

    assert 303 == answer.status
    assert f"/c/{NAME}/overview" == answer.headers["location"]
