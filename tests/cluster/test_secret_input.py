"""Commands take passwords and keys from a terminal or standard input, in real processes."""

import asyncio
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mqadminkit import white_listed

from gantrymq.client.admin.admin import Admin
from gantrymq.console.access.users_file import read_users
from gantrymq.testing.threaded import GantryCluster

SECRET = "never-on-a-command-line"
SECONDS_MAX = 60
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GantryCluster]:
    """A broker with an access file that has users besides."""
    rules = white_listed(tmp_path_factory.mktemp("access"))
    running = GantryCluster(acl_enable=True, acl_file=rules["aclFile"])
    yield running
    running.close()


def by_pipe(*words: str, line: str = SECRET) -> subprocess.CompletedProcess[str]:
    """A command whose standard input has a line."""
    return subprocess.run(
        [PROGRAMS / words[0], *words[1:]],
        input=f"{line}\n",
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def at_terminal(*words: str, typed: list[str]) -> tuple[int, str]:
    """The exit code of a command, and all that stands on the terminal where the lines are typed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PROGRAMS / words[0], *words[1:]],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
            if typed and shown.endswith(b": "):  # it asks, and echoes no more
                os.write(ours, typed.pop(0).encode() + b"\n")
    os.close(ours)
    return process.returncode, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the last process that had the terminal is gone
        return b""


def secrets_of(cluster: GantryCluster) -> tuple[str | None, str | None]:
    """The password of the user kim, and the secret key of the account new-account."""

    async def ask() -> tuple[str | None, str | None]:
        async with Admin(cluster.namesrv) as admin:
            (place,) = (await admin.masters()).values()
            user = await admin.get_user(place, "kim")
            accounts = (await admin.access_config(place)).plain_access_configs
        keys = {account["accessKey"]: account["secretKey"] for account in accounts}
        return user and user.password, keys.get("new-account")

    return asyncio.run(ask())


def test_a_line_of_standard_input_is_the_secret(cluster: GantryCluster) -> None:
    """
    For `mqadmin createUser -p -` and `updateAclConfig -s -`; an empty line changes nothing.
    """
    place = "-n", cluster.namesrv, "-c", "DefaultCluster"
    made = by_pipe("mqadmin", "createUser", *place, "-u", "kim", "-p", "-")
    put = by_pipe("mqadmin", "updateAclConfig", *place, "-a", "new-account", "-s", "-")
    user = by_pipe("mqadmin", "updateUser", *place, "-u", "kim", "-p", "-", line="")
    account = by_pipe("mqadmin", "updateAclConfig", *place, "-a", "x", "-s", "-", line=" ")

    assert (0, 0) == (made.returncode, put.returncode), made.stderr + put.stderr
    assert (SECRET, SECRET) == secrets_of(cluster)
    assert (1, 1) == (user.returncode, account.returncode)
    assert "the password is empty" in user.stderr
    assert "the secret key is empty" in account.stderr
    assert SECRET not in made.stdout + made.stderr + put.stdout + put.stderr


def test_a_terminal_is_asked_twice_and_shows_nothing(cluster: GantryCluster) -> None:
    """
    Two that differ are asked for again.
    """
    place = "-n", cluster.namesrv, "-c", "DefaultCluster"
    made = by_pipe("mqadmin", "createUser", *place, "-u", "lee", "-p", "-")
    typed = ["typed-secret", "typo-secret", "typed-secret", "typed-secret"]
    code, shown = at_terminal("mqadmin", "updateUser", *place, "-u", "lee", "-p", "-", typed=typed)

    async def password() -> str | None:
        async with Admin(cluster.namesrv) as admin:
            (broker,) = (await admin.masters()).values()
            user = await admin.get_user(broker, "lee")
        return user and user.password

    assert 0 == made.returncode
    assert 0 == code, shown
    assert "typed-secret" == asyncio.run(password())
    assert (2, 2) == (shown.count("Password: "), shown.count("Once more: "))
    assert "the two differ" in shown
    assert "secret" not in shown


def test_users_of_the_console_are_made_the_same_way(tmp_path: Path) -> None:
    """
    `gantry console user add`, with a line of standard input and at a terminal.
    """
    add = "gantry", "console", "user", "add"
    where = "--data", str(tmp_path)
    piped = by_pipe(*add, "ann", *where)
    code, shown = at_terminal(*add, "bob", *where, typed=[SECRET, SECRET])

    assert 0 == piped.returncode, piped.stderr
    assert 0 == code, shown
    assert {"ann", "bob"} == read_users(tmp_path / "users.json").keys()
    assert SECRET not in piped.stdout + piped.stderr + shown
