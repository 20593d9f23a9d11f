"""The console answers over HTTP: pages, and the API that they use."""

import logging
import re

from consolekit import NAME, console

from gantrymq.testing.threaded import GantryCluster


def test_overview(gantry: GantryCluster) -> None:
    """The overview shows every broker, by the API and as a page."""
    with console(gantry) as site:
        members = site.api("GET", f"/clusters/{NAME}/members")["members"]
        page = site.page(f"/c/{NAME}/overview")

    assert ["broker-a"] == [each["broker"] for each in members]
    assert "broker-a" in page


def test_pages_lead_to_the_description_of_the_api(gantry: GantryCluster) -> None:
    """Programs find the same there."""
    with console(gantry) as site:
        address = re.findall(r'<a href="([^"]+)">API<', site.page(f"/c/{NAME}/overview"))[0]
        found = site.ask("GET", address).json()

    assert "/api/v1/clusters" in found["paths"]


def test_levels_of_the_log_change(gantry: GantryCluster) -> None:
    """At once, for all and for parts; what is no level or part is refused, and changes nothing."""
    part = logging.getLogger("gantrymq.console.api")
    before = logging.getLogger("gantrymq").level
    with console(gantry) as site:
        try:
            assert {"level": "INFO", "levels": ""} == site.api("GET", "/logs")
            site.api("PUT", "/logs", level="warn", levels="console.api:DEBUG")
            assert {"level": "WARNING", "levels": "console.api:DEBUG"} == site.api("GET", "/logs")
            assert (logging.DEBUG, False) == (
                part.level,
                logging.getLogger("gantrymq.client").isEnabledFor(logging.INFO),
            )
            for wrong in ({"level": "LOUD"}, {"levels": "nothing:DEBUG"}, {"levels": "console"}):
                assert 400 == site.call("PUT", "/logs", **wrong).status
            assert logging.DEBUG == part.level
            assert "change_levels" in site.ask("GET", "/api/v1/audit").text
        finally:
            site.api("PUT", "/logs")
            logging.getLogger("gantrymq").setLevel(before)
    assert logging.NOTSET == part.level


def test_entry(gantry: GantryCluster) -> None:
    """The entry leads to the overview of the first cluster."""
    with console(gantry) as site:
        answer = site.ask("GET", "/")

    assert 303 == answer.status
    assert f"/c/{NAME}/overview" == answer.headers["location"]
