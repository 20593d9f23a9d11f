"""The log of a console, whatever its level, has neither passwords nor keys of those who use it."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Final

import pytest
from consolekit import NAME, Site
from rightskit import RIGHTS, ROOT, ROOT_SECRET, cluster_with_accounts, cluster_with_users

from gantrymq.console.access.gate import COOKIE
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile

SECRETS: Final = (
    "ann's password", "wrong-password", ROOT_SECRET, "inner-secret", "shop-secret", "other-secret",
    "new-app-secret",
)  # fmt: skip


@contextmanager
def logged(namesrv: str, data: Path, *words: str) -> Iterator[tuple[Site, list[str]]]:
    """A console in a process of its own that logs everything; at its end, all that it wrote."""
    command = (
        sys.executable, "-c", "from gantrymq.cli.main import main; main()", "console",
        "--namesrv", f"{NAME}={namesrv}", "--port", "0", "--data", str(data),
        "--log-level", "DEBUG", *words,
    )  # fmt: skip
    written: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        try:
            yield Site(first.split()[-1]), written
        finally:
            process.terminate()
            written += [first, *process.communicate()]
            written += [file.read_text() for file in sorted((data / "logs").iterdir())]


def log_in(site: Site, name: str, password: str) -> str:
    """Log in with the form; the token of the session, or nothing."""
    reply = site.act("/login", name=name, password=password)
    cookie = SimpleCookie(reply.headers.get("set-cookie", ""))
    token = "".join(each.value for each in cookie.values())
    site.headers["cookie"] = "; ".join(f"{each.key}={each.value}" for each in cookie.values())
    return token


def basic(name: str, password: str) -> str:
    return base64.b64encode(f"{name}:{password}".encode()).decode()


def told(written: list[str], *more: str) -> list[str]:
    """The secrets that are in what a console wrote, as they are or as JSON and addresses."""
    text = "\n".join(written)
    wanted = (*SECRETS, "ann%27s+password", *more)
    return [each for each in wanted if each in text]


def test_users_of_the_console(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Log in well and badly, by form and header; then give the cluster's users passwords.
    """
    UsersFile(tmp_path / "users.json").put("ann", Role.ADMIN, "ann's password")
    with (
        cluster_with_users(monkeypatch) as cluster,
        logged(cluster.namesrv, tmp_path) as (site, written),
    ):
        assert "" == log_in(site, "ann", "wrong-password")
        token = log_in(site, "ann", "ann's password")
        assert token
        assert "DEBUG" == site.api("GET", "/logs")["level"]
        site.api("POST", f"{RIGHTS}/users", user="shop", password="shop-secret")
        assert 400 == site.call("POST", f"{RIGHTS}/users", user="", password="shop-secret").status
        site.api("PUT", f"{RIGHTS}/users/shop", password="other-secret")
        broken = json.dumps({"user": "x", "password": "shop-secret"})[:-1].encode()
        site.ask("POST", f"/api/v1{RIGHTS}/users", broken, content_type="application/json")
        site.act(f"/c/{NAME}/new-user", user="shop", password="new-app-secret", nobody="knows")
        del site.headers["cookie"]
        header = basic("ann", "ann's password")
        reply = site.ask("GET", "/api/v1/account", authorization=f"Basic {header}")
        assert 200 == reply.status
        (tmp_path / "users.json").write_text('{"users": ["ann\'s password"]}')
        site.ask("GET", "/api/v1/account", authorization=f"Basic {header}")
        cluster.call(cluster.cluster.stop_broker())
        site.headers["cookie"] = f"{COOKIE}={token}"
        asked = {"user": "late", "password": "shop-secret"}
        assert 401 != site.call("POST", f"{RIGHTS}/users", **asked).status

    assert "CONSOLE USERS NOT CHANGED" in "".join(written)
    assert [] == told(written, token, header)


def test_keys_of_the_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Log in with keys, right and wrong ones, and make and change others.
    """
    key_file = tmp_path / "client.yml"
    key_file.write_text(f"accessKey: {ROOT}\nsecretKey: {ROOT_SECRET}\n")
    words = ("--login", "cluster", "--key-file", f"{NAME}={key_file}", "--admin", ROOT)
    with (
        cluster_with_accounts(monkeypatch, tmp_path) as cluster,
        logged(cluster.namesrv, tmp_path / "console", *words) as (site, written),
    ):
        assert "" == log_in(site, "shop-app", "wrong-password")
        token = log_in(site, "shop-app", "shop-secret")
        assert token
        assert 200 == site.ask("GET", f"/c/{NAME}/topics").status
        other = log_in(site, ROOT, ROOT_SECRET)
        assert "DEBUG" == site.api("GET", "/logs")["level"]
        made = {"accessKey": "new-app", "secretKey": "new-app-secret"}
        site.api("POST", f"{RIGHTS}/accounts", **made)
        site.api("PUT", f"{RIGHTS}/accounts/new-app", secretKey="other-secret")

    assert [] == told(written, token, other)
