"""Reads the metrics of servers, as Prometheus does."""

import asyncio
import base64
import http.client
from collections.abc import Callable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Page(NamedTuple):
    """One scrape."""

    samples: dict[str, list[tuple[dict[str, str], float]]]
    """Labels and values by the name of the sample."""
    kinds: dict[str, str]
    """By the name of the metric."""

    def value(self, name: str, **labels: str) -> float:
        """The value of the one sample that has these labels."""
        found = [
            value for own, value in self.samples.get(name, []) if labels.items() <= own.items()
        ]
        assert 1 == len(found), (name, labels, self.samples.get(name))
        return found[0]

    def has(self, name: str, **labels: str) -> bool:
        return any(labels.items() <= own.items() for own, _ in self.samples.get(name, []))


def parse(text: str) -> Page:
    """What Prometheus' own parser makes of a page; no series stands there twice."""
    page = Page({}, {})
    seen = set()
    for family in text_string_to_metric_families(text):
        suffix = "_total" if family.type == "counter" else ""
        page.kinds[family.name + suffix] = family.type
        for sample in family.samples:
            key = sample.name, *sorted(sample.labels.items())
            assert key not in seen, key
            seen.add(key)
            page.samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return page


def get(address: str, pair: str = "") -> tuple[int, str]:
    """Status and body of a page, with a key pair `access:secret`."""
    host, _, path = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    connection.request("GET", f"/{path}", headers=headers if pair else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


async def scrape(address: str | None, pair: str = "") -> Page:
    """The metrics at an address."""
    assert address is not None
    status, text = await asyncio.to_thread(get, address, pair)
    assert 200 == status, text
    return parse(text)


async def scrape_until(address: str | None, holds: Callable[[Page], bool]) -> Page:
    """The first scrape of which something holds."""
    async with asyncio.timeout(20):
        while True:
            page = await scrape(address)
            if holds(page):
                return page
            await asyncio.sleep(0.05)
