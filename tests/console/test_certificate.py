"""The certificate of a console: renewed while it runs, its key may be encrypted."""

import asyncio
import http.client
import logging
import socket
import ssl
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from click.testing import CliRunner
from cryptography import x509
from tlskit import Authority

from gantrymq.base.errors import ConfigError
from gantrymq.base.tls import files as tls_files
from gantrymq.cli.main import main as gantry
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile
from gantrymq.console.serve import ConsoleServer
from gantrymq.console.settings import ClusterAddress, ConsoleSettings, LoginKind

PASSWORD = "of-the-key"
SECONDS_MAX = 30


def settings(folder: Path, password: str = "") -> ConsoleSettings:
    """A console of a cluster that is not there."""
    return ConsoleSettings(
        clusters=(ClusterAddress("away", "127.0.0.1:1"),),
        data=folder / "data",
        port=0,
        tls_certificate=folder / "console.pem",
        tls_key=folder / "console.key",
        tls_key_password=password,
    )


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.cert))


def number_shown(url: str, authority: Authority, name: str | None = "localhost") -> int:
    """The serial number of the certificate that a new connection is shown."""
    port = int(url.rpartition(":")[2])
    context = trusting(authority)
    context.check_hostname = name is not None
    with (
        socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as link,
        context.wrap_socket(link, server_hostname=name) as secure,
    ):
        return x509.load_der_x509_certificate(secure.getpeercert(True) or b"").serial_number


def number_of(path: Path) -> int:
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number


def with_console(wanted: ConsoleSettings, work: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(SECONDS_MAX), ConsoleServer(wanted) as console:
            await work(console.url)

    asyncio.run(main())


def test_a_renewed_certificate_counts_for_new_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Without a restart. A damaged file leaves the old one in use, and the log says so.
    """
    monkeypatch.setattr(tls_files, "CHECK_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "gantrymq")
    authority = Authority(tmp_path)
    path = authority.issue("console").cert

    async def work(url: str) -> None:
        first = await asyncio.to_thread(number_shown, url, authority)
        assert number_of(path) == first
        authority.issue("console")
        second = await asyncio.to_thread(number_shown, url, authority)
        assert number_of(path) == second != first
        assert second == await asyncio.to_thread(number_shown, url, authority, None)
        path.write_text("no certificate")
        assert second == await asyncio.to_thread(number_shown, url, authority)

    with_console(settings(tmp_path), work)
    assert "certificates renewed" in caplog.text
    assert "the old ones stay in use" in caplog.text


def test_a_key_may_be_encrypted(tmp_path: Path) -> None:
    """
    With its password pages are served; without it the start says what is wrong, and asks nobody.
    """
    authority = Authority(tmp_path)
    authority.issue("console", password=PASSWORD)

    def read(url: str) -> int:
        page = f"https://localhost:{url.rpartition(':')[2]}/api/v1/clusters"
        with urllib.request.urlopen(page, context=trusting(authority), timeout=SECONDS_MAX) as got:
            return int(got.status)

    async def work(url: str) -> None:
        assert 200 == await asyncio.to_thread(read, url)

    with_console(settings(tmp_path, PASSWORD), work)
    for wrong in ("", "another"):
        with pytest.raises(
            ConfigError, match=r"TLS cannot be set up with .*console\.pem"
        ) as refused:
            ConsoleServer(settings(tmp_path, wrong))
        assert PASSWORD not in str(refused.value)


def test_the_command_reads_the_password_from_a_file(tmp_path: Path) -> None:
    """
    A wrong password and a missing file are errors of one line, without the password.
    """
    issued = Authority(tmp_path).issue("console", password=PASSWORD)
    words = [
        "console", "--namesrv", "127.0.0.1:1", "--port", "0", "--data", str(tmp_path / "data"),
        "--tls-cert", str(issued.cert), "--tls-key", str(issued.key), "--tls-key-password",
    ]  # fmt: skip
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("another-one\n")

    for file, words_of_error in ((wrong, "TLS cannot be set up"), (tmp_path / "no", "cannot read")):
        refused = CliRunner().invoke(gantry, [*words, str(file)])
        assert 1 == refused.exit_code
        assert words_of_error in refused.stderr
        assert 1 == refused.stderr.count("\n")
        assert "another-one" not in refused.stderr


def test_the_cookie_of_a_login_is_for_https_only(tmp_path: Path) -> None:
    """
    Browsers send it over HTTPS alone, show it to no script, and forget it at the logout.
    """
    authority = Authority(tmp_path)
    authority.issue("console")
    users = UsersFile(tmp_path / "data" / "users.json")
    users.path.parent.mkdir()
    users.put("ann", Role.ADMIN, "ann's password")

    def cookie_set(url: str, path: str, cookie: str = "", **fields: str) -> str:
        port = urlsplit(url).port
        link = http.client.HTTPSConnection(
            "localhost", port, timeout=SECONDS_MAX, context=trusting(authority)
        )
        head = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"https://localhost:{port}",
            "Cookie": cookie,
        }
        try:
            link.request("POST", path, urlencode(fields), head)
            answer = link.getresponse()
            assert answer.status == 303, answer.read()
            return answer.headers["Set-Cookie"]
        finally:
            link.close()

    async def work(url: str) -> None:
        asked = {"name": "ann", "password": "ann's password"}
        begun = await asyncio.to_thread(cookie_set, url, "/login", **asked)
        ended = await asyncio.to_thread(cookie_set, url, "/logout", begun.partition(";")[0])
        for each in (begun, ended):
            assert {"secure", "httponly", "samesite=strict"} <= set(each.lower().split("; "))
        assert "max-age=0" in ended.lower()

    with_console(replace(settings(tmp_path), login=LoginKind.USERS), work)
