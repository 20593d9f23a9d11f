"""Hashes of passwords, the file of users, and how often somebody may try."""

import stat
from pathlib import Path

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.console.access.attempts import (
    ADDRESS_FAILURES_MAX,
    FAILURES_MAX,
    FORGET_SECONDS,
    KEPT_MAX,
    LoginAttempts,
)
from gantrymq.console.access.passwords import hashed, is_right
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import UsersFile, read_users
from gantrymq.console.pages.own_place import own_place


def test_a_password_is_known_by_its_hash() -> None:
    """
    The kept text has a salt of its own and tells only the right password.
    """
    kept = hashed("correct horse")

    assert is_right("correct horse", kept)
    assert not is_right("correct horsf", kept)
    assert "horse" not in kept
    assert kept != hashed("correct horse")


@pytest.mark.parametrize(
    "kept",
    ["", "plain", "scrypt$1$8$1$AAAA$AAAA", "scrypt$999999999$8$1$AAAA$AAAA", "scrypt$a$8$1$A$A",
     "scrypt$16384$8$1$?$?", "scrypt$16384$8$1$AAAA$AAAA"],
)  # fmt: skip
def test_damaged_hashes_let_nobody_in(kept: str) -> None:
    """
    A text that is no hash, or whose costs are absurd, is nobody's password.
    """
    assert not is_right("", kept)
    assert not is_right("password", kept)


def test_users_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    """
    Users can be added, changed and removed; the file is private and has no password.
    """
    path = tmp_path / "users.json"
    file = UsersFile(path)
    file.put("ann", Role.ADMIN, "ann's password")
    file.put("bob", Role.READER, "bob's password")
    before = file.users["ann"]
    file.put("ann", Role.READER, "ann's new one")

    assert {"ann", "bob"} == set(file.users)
    assert Role.READER is file.users["ann"].role
    assert before != file.users["ann"]
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert "password" not in path.read_text().replace('"password"', "")
    file.remove("bob")
    assert {"ann"} == set(file.users)
    with pytest.raises(ConfigError, match="no user 'bob'"):
        file.remove("bob")


def test_the_first_user_makes_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Also one that is named from the present folder.
    """
    monkeypatch.chdir(tmp_path)
    UsersFile(Path("new/users.json")).put("ann", Role.ADMIN, "ann's password")
    assert {"ann"} == set(read_users(tmp_path / "new" / "users.json"))


@pytest.mark.parametrize(
    ("name", "password", "wrong"),
    [("", "long enough", "no name"), ("a b", "long enough", "no name"), ("ann", "short", "8 to")],
)
def test_users_that_cannot_be_are_refused(
    tmp_path: Path, name: str, password: str, wrong: str
) -> None:
    """
    A name of other characters or a short password is refused with what would be right.
    """
    with pytest.raises(ConfigError, match=wrong):
        UsersFile(tmp_path / "users.json").put(name, Role.ADMIN, password)


def test_a_damaged_file_changes_nothing(tmp_path: Path) -> None:
    """
    Users that were known stay, nobody else comes in, and commands say what is wrong.
    """
    path = tmp_path / "users.json"
    file = UsersFile(path)
    file.put("ann", Role.ADMIN, "ann's password")
    known = dict(file.users)
    for text in ("{", '{"eve": {"role": "admin", "password": "x"}}',
                 '{"eve": {"role": "cluster user", "password": "x"}}'):  # fmt: skip
        path.write_text(text)
        assert known == file.users
        with pytest.raises(ConfigError, match=r"users\.json"):
            read_users(path)


def test_guesses_are_counted_by_name_and_address() -> None:
    """
    A few wrong passwords for one name, or more from one address, have to wait; time forgives.
    """
    attempts = LoginAttempts()
    for _ in range(FAILURES_MAX):
        assert 0 == attempts.seconds_to_wait("ann", "10.0.0.1", 0.0)
        attempts.failed("ann", "10.0.0.1", 0.0)

    assert FORGET_SECONDS - 1 == attempts.seconds_to_wait("ann", "10.0.0.9", 1.0)
    assert 0 == attempts.seconds_to_wait("bob", "10.0.0.1", 1.0)
    assert 0 >= attempts.seconds_to_wait("ann", "10.0.0.9", FORGET_SECONDS)
    for number in range(ADDRESS_FAILURES_MAX):
        attempts.failed(f"name-{number}", "10.0.0.1", 2.0)
    assert attempts.seconds_to_wait("bob", "10.0.0.1", 3.0) > 0
    for number in range(2 * KEPT_MAX):
        attempts.failed(f"name-{number}", f"address-{number}", 4.0)
    assert len(attempts._failures) == KEPT_MAX


@pytest.mark.parametrize(
    ("asked", "place"),
    [("/c/a/topics?x=1", "/c/a/topics?x=1"), ("//evil", "/"), ("/\\evil", "/"), ("", "/"),
     ("https://evil/", "/"), ("javascript:x", "/"), ("/\r\nSet-Cookie: a", "/")],
)  # fmt: skip
def test_a_login_leads_to_this_console_only(asked: str, place: str) -> None:
    """
    After the login a browser is sent to a page of the console, whatever the address says.
    """
    assert place == own_place(asked)
