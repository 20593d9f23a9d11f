"""The REST API against questions that its own OpenAPI document allows and forbids: no answer is a
fault, none hangs, and all are as the document says.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import schemathesis
from consolekit import NAME, Site, console
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gantrymq import Message
from gantrymq.console.api.all import ENDPOINTS
from gantrymq.console.api.endpoint import PREFIX, Endpoint
from gantrymq.console.api.openapi import document
from gantrymq.sync import Producer
from gantrymq.testing.threaded import GantryCluster

EXAMPLES: Final = 15
ANSWER_SECONDS_MAX: Final = 20.0
PROCESSES: Final = ("start_archive", "start_replay", "start_report")
"""Each starts a process; without the right to change they are asked, too."""
ASKED: Final = [
    each
    for each in ENDPOINTS
    if each.name not in PROCESSES and "text/event-stream" not in each.media_types
]
CHANGES: Final = [each for each in ENDPOINTS if each.is_change]
CHECKS: Final = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[GantryCluster]:
    running = GantryCluster()
    try:
        running.create_topic("orders")
        with Producer(running.namesrv, group="shop") as producer:
            for number in range(5):
                producer.send(Message("orders", f"order {number}", keys=(f"k{number}",)))
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def site(cluster: GantryCluster) -> Iterator[Site]:
    with console(cluster) as found:
        yield found


@pytest.fixture(scope="module")
def site_for_readers(cluster: GantryCluster) -> Iterator[Site]:
    with console(cluster, is_read_only=True) as found:
        yield found


SCHEMA: Final = schemathesis.openapi.from_dict(document(ENDPOINTS, "1"))


def has_limits(endpoint: Endpoint) -> bool:
    """Whether the document forbids anything: a name in a path may be any text."""
    operation = SCHEMA.raw_schema["paths"][PREFIX + endpoint.path][endpoint.method.lower()]
    free = {"type": "string"}
    return "requestBody" in operation or any(
        each["schema"] != free for each in operation["parameters"]
    )


LIMITED: Final = [each for each in ASKED if has_limits(each)]
few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


def ask(
    endpoint: Endpoint,
    look: Callable[[Any], None],
    mode: GenerationMode = GenerationMode.POSITIVE,
) -> None:
    """Make questions for one endpoint, such as the document allows or forbids; look at each."""
    operation = SCHEMA[PREFIX + endpoint.path][endpoint.method]

    @few
    @given(operation.as_strategy(mode))
    def try_one(case: Any) -> None:
        if "cluster" in case.path_parameters:
            case.path_parameters["cluster"] = NAME
        look(case)

    try_one()


@pytest.mark.parametrize("endpoint", ASKED, ids=lambda each: each.name)
def test_every_question_has_an_answer(site: Site, endpoint: Endpoint) -> None:
    """
    Whatever is asked about a cluster that is there, the answer is one that the document names.
    """

    def look(case: Any) -> None:
        case.call_and_validate(base_url=site.url, checks=CHECKS, timeout=ANSWER_SECONDS_MAX)

    ask(endpoint, look)


@pytest.mark.parametrize("endpoint", LIMITED, ids=lambda each: each.name)
def test_a_question_that_is_forbidden_is_refused(site: Site, endpoint: Endpoint) -> None:
    """
    Values of another type or beyond their limits, and fields that are missing or that nobody
    knows: the answer says what is wrong, with a status that the document names.
    """

    def look(case: Any) -> None:
        case.call_and_validate(base_url=site.url, checks=CHECKS, timeout=ANSWER_SECONDS_MAX)

    ask(endpoint, look, GenerationMode.NEGATIVE)


@pytest.mark.parametrize("endpoint", ASKED, ids=lambda each: each.name)
def test_a_field_that_nobody_knows_is_refused(site: Site, endpoint: Endpoint) -> None:
    """
    A misspelt name is an error, not a default; the answer repeats it.
    """
    path = re.sub(r"\{\w+\}", "1", endpoint.path.replace("{cluster}", NAME))

    answer = site.call(endpoint.method, path, misspelt="x")

    assert (400, True) == (answer.status, "misspelt" in answer.text), answer.text


@pytest.mark.parametrize("endpoint", CHANGES, ids=lambda each: each.name)
def test_nothing_is_changed_without_the_right(site_for_readers: Site, endpoint: Endpoint) -> None:
    """
    Of a console that is read only every change is refused, or makes no sense in the first place.
    """

    def look(case: Any) -> None:
        answer = case.call(base_url=site_for_readers.url, timeout=ANSWER_SECONDS_MAX)
        assert answer.status_code in (400, 403, 404), answer.text

    ask(endpoint, look)
