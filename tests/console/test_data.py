"""The data page: archives, reports and replays as jobs on a real Spark."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from consolekit import Site, console, until

from gantrymq import Message, Producer
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile
from gantrymq.console.settings import LoginKind
from gantrymq.testing.threaded import GantryCluster

pytestmark = pytest.mark.timeout(300)

MESSAGES = 50
SECONDS_MAX = 200.0


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    """A console whose archive and report are made, and its folder."""
    folder = tmp_path_factory.mktemp("lake")
    cluster = GantryCluster()
    try:
        cluster.create_topic("orders")
        cluster.create_topic("again")

        async def send() -> None:
            async with Producer(cluster.namesrv, group="shop") as producer:
                for number in range(MESSAGES):
                    await producer.send(Message("orders", f"order {number}", keys=(f"k{number}",)))

        asyncio.run(send())
        with console(cluster, data=folder) as site:
            job = _start(site, "archives", name="lake", topics="orders")
            assert "done" == job["state"], job
            assert f"rows: {MESSAGES}, " in job["text"]
            assert (MESSAGES, MESSAGES) == (job["done"], job["total"]) or job["total"] is None
            yield site, folder
    finally:
        cluster.close()


def _start(site: Site, what: str, **question: Any) -> dict[str, Any]:
    """Begin a job and wait for its end."""
    begun = site.api("POST", f"/clusters/test/data/{what}", **question)

    def ended() -> dict[str, Any]:
        job: dict[str, Any] = site.api("GET", f"/clusters/test/jobs/{begun['job']}")
        return job if job["state"] != "running" else {}

    return until(ended, SECONDS_MAX)


def test_an_archive_holds_its_topic(lake: tuple[Site, Path]) -> None:
    """
    The table of a finished job is listed with its topics, rows and times.
    """
    site, _ = lake
    (archive,) = site.api("GET", "/clusters/test/data")["archives"]

    assert ("lake", ["orders"], MESSAGES) == (archive["name"], archive["topics"], archive["rows"])
    assert archive["firstMs"] <= archive["lastMs"]
    assert archive["queues"] == len(archive["positions"])
    assert MESSAGES == sum(each["nextOffset"] for each in archive["positions"])
    shown = site.page("/c/test/data")
    assert "Checkpoint of lake" in shown
    assert "archive orders" in site.page("/c/test/data/jobs")


def test_a_replay_counts_and_sends(lake: tuple[Site, Path]) -> None:
    """
    A dry run sends nothing; a replay from the archive sends every message, and is in the history.
    """
    site, _ = lake
    asked = {"archive": "lake", "topic": "orders", "into": "again"}
    dry = _start(site, "replays", **asked, dryRun=True)
    assert "done" == dry["state"], dry
    assert f"{MESSAGES} messages" in "\n".join(dry["lines"])
    assert 0 == _stored(site, "again")
    real = _start(site, "replays", **asked, rate=10_000)
    assert "done" == real["state"], real
    assert MESSAGES == _stored(site, "again")
    last = site.api("GET", "/clusters/test/data")["replays"][0]
    assert ("orders", "again", MESSAGES) == (last["topic"], last["into"], last["sent"])


def _stored(site: Site, topic: str) -> int:
    found = site.api("GET", f"/clusters/test/topics/{topic}")["stored"]
    return int(found)


def test_a_report_is_shown_with_its_pictures(lake: tuple[Site, Path]) -> None:
    """
    A report has its verdict on the page; its own page and pictures open, and nothing beside them.
    """
    site, folder = lake
    job = _start(site, "reports", name="today", topics=["orders"])
    assert "done" == job["state"], job
    (report,) = site.api("GET", "/clusters/test/data")["reports"]
    assert "today" == report["name"]
    assert report["verdict"]

    path = "/api/v1/clusters/test/data/reports/today"
    page = site.ask("GET", path)
    assert 200 == page.status
    assert "sandbox" in page.headers["content-security-policy"]
    assert "orders" in page.text
    picture = site.ask("GET", f"{path}?file={report['pictures'][0]['file']}")
    assert "image/svg+xml" == picture.headers["content-type"]
    (folder / "lake" / "reports" / "secret.txt").write_text("secret")
    for outside in ("../secret.txt", "report.json/../../secret.txt", "/etc/passwd", "secret.txt"):
        assert 404 == site.ask("GET", f"{path}?file={outside}").status
    for name in ("..", ".hidden", "no-such"):
        assert site.ask("GET", f"/api/v1/clusters/test/data/reports/{name}").status in (400, 404)


@pytest.mark.parametrize(
    ("what", "question", "says"),
    [
        ("archives", {"name": "../out", "topics": "orders"}, "is no name"),
        ("archives", {"name": "lake"}, "topics"),
        ("replays", {"archive": "none", "topic": "orders", "into": "x"}, "no archive 'none'"),
        ("reports", {"name": "a b"}, "is no name"),
    ],
)
def test_questions_that_make_no_sense_start_nothing(
    lake: tuple[Site, Path], what: str, question: dict[str, Any], says: str
) -> None:
    """
    A name that would leave the folder, or one that does not exist, is refused before Spark starts.
    """
    site, _ = lake
    before = len(site.api("GET", "/clusters/test/jobs")["jobs"])
    reply = site.call("POST", f"/clusters/test/data/{what}", **question)

    assert reply.status in (400, 404)
    assert says in reply.json()["error"]
    assert before == len(site.api("GET", "/clusters/test/jobs")["jobs"])


def test_a_job_that_fails_says_why_and_one_that_is_stopped_ends(lake: tuple[Site, Path]) -> None:
    """
    The words of the command are those of the job; a job that follows its topic can be stopped.
    """
    site, _ = lake
    failed = _start(site, "archives", name="other", topics="no-such-topic")
    assert "failed" == failed["state"]
    assert "no-such-topic" in failed["text"]

    begun = site.api(
        "POST", "/clusters/test/data/archives", name="lake", topics="orders", follow=True
    )
    second = site.call("POST", "/clusters/test/data/archives", name="lake", topics="orders")
    assert 400 == second.status
    assert "runs already" in second.json()["error"]
    site.api("DELETE", f"/clusters/test/jobs/{begun['job']}")
    assert "stopped" == site.api("GET", f"/clusters/test/jobs/{begun['job']}")["state"]


def test_a_reader_starts_no_job(gantry: GantryCluster, tmp_path: Path) -> None:
    """
    Archives and reports are listed for readers, and begun by admins only.
    """
    UsersFile(tmp_path / "users.json").put("bob", Role.READER, "bob's password")
    with console(gantry, data=tmp_path, login=LoginKind.USERS) as site:
        site.headers["authorization"] = "Basic Ym9iOmJvYidzIHBhc3N3b3Jk"
        assert [] == site.api("GET", "/clusters/test/data")["archives"]
        refused = site.call("POST", "/clusters/test/data/archives", name="a", topics="orders")
        assert 403 == refused.status
