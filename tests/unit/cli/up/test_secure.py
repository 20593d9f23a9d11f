"""The files of `gantry up --secure`: made once, kept, and never half."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from gantrymq.access.key_sources import credentials_of_file
from gantrymq.base.config import WrittenSettings
from gantrymq.base.errors import ConfigError
from gantrymq.base.tls.files import TlsFiles
from gantrymq.base.tls.settings import take_tls, tls_settings
from gantrymq.cli.up.secure import prepare
from gantrymq.client.core.options import ClientOptions
from gantrymq.client.core.tls import PLAIN, network_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def server_cert(root: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((root / "secure" / "server.pem").read_bytes())


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    """
    Clients that have the file go on.
    """
    prepare(tmp_path, "127.0.0.1", NOW)
    before = contents(tmp_path / "secure")
    prepare(tmp_path, "127.0.0.1", NOW + timedelta(days=30))

    assert before == contents(tmp_path / "secure")


@pytest.mark.parametrize("host, later", [("127.0.0.1", YEAR * 2), ("10.0.0.7", timedelta())])
def test_an_old_certificate_or_one_of_another_host_is_replaced(
    tmp_path: Path, host: str, later: timedelta
) -> None:
    """
    By one of the same authority: nobody has to copy the file again.
    """
    files = prepare(tmp_path, "127.0.0.1", NOW)
    before, key_file = server_cert(tmp_path), files.key_file.read_bytes()
    prepare(tmp_path, host, NOW + later)
    after = server_cert(tmp_path)

    assert before.serial_number != after.serial_number
    assert before.issuer == after.issuer
    assert after.not_valid_after_utc > NOW + later + timedelta(days=300)
    assert host in str(after.extensions[0].value)
    assert key_file == files.key_file.read_bytes()


def test_the_key_file_is_yaml_properties_and_pem(tmp_path: Path) -> None:
    """
    Each of its readers finds what it looks for: tools.yml, Java's Properties, a trust store.
    """
    path = prepare(tmp_path, "127.0.0.1", NOW).key_file
    found = yaml.safe_load(path.read_text())
    own = credentials_of_file(path)
    context = ssl.create_default_context(cafile=str(path))

    assert {
        "accessKey": own.access_key,
        "secretKey": own.secret_key,
        "tls.enable": True,
    }.items() <= (found.items())
    assert "true" == WrittenSettings.in_file(str(path)).values["tls.enable"]
    assert 1 == sum(cert["subject"] == ((("commonName", "GantryMQ authority"),),)
                    for cert in context.get_ca_certs())  # fmt: skip


def test_a_key_file_turns_tls_on(tmp_path: Path) -> None:
    """
    As an option and by the environment; an option for TLS is stronger.
    """
    path = str(prepare(tmp_path, "127.0.0.1", datetime.now(UTC)).key_file)
    by_name = network_of(ClientOptions(key_file=path), {})

    assert by_name is not PLAIN
    assert by_name is network_of(ClientOptions(), {"GANTRY_CREDENTIALS": path})
    assert PLAIN is network_of(ClientOptions(key_file=path, use_tls=False), {})
    assert PLAIN is network_of(ClientOptions(key_file=path), {"ROCKETMQ_TLS_ENABLE": "false"})


def test_a_plain_key_file_leaves_tls_off(tmp_path: Path) -> None:
    """
    RocketMQ's tools.yml says nothing of it.
    """
    path = tmp_path / "tools.yml"
    path.write_text("accessKey: operator\nsecretKey: operator-secret\n")

    assert PLAIN is network_of(ClientOptions(key_file=str(path)), {})


def test_the_settings_are_those_of_a_server(tmp_path: Path) -> None:
    """
    They can be read, and their certificates belong together.
    """
    files = prepare(tmp_path, "127.0.0.1", datetime.now(UTC))
    tls, rest = take_tls(WrittenSettings.in_file(str(files.settings)))

    assert {"aclEnable", "aclFile", "innerClientAuthenticationCredentials"} == set(rest.values)
    assert "enforcing" == tls.mode.value
    assert TlsFiles(tls).context is not None


@pytest.mark.parametrize(
    "lost, said",
    [
        ("client.yml", "client.yml is missing"),
        ("plain_acl.yml", "plain_acl.yml is missing"),
        ("authority.key", "authority.key cannot be read"),
        ("authority.pem", "authority.pem cannot be read"),
    ],
)
def test_what_is_lost_is_not_made_up(tmp_path: Path, lost: str, said: str) -> None:
    """
    A new key beside old accounts would lock everybody out, or let the wrong ones in.
    """
    prepare(tmp_path, "127.0.0.1", NOW)
    (tmp_path / "secure" / lost).unlink()

    with pytest.raises(ConfigError, match=said):
        prepare(tmp_path, "127.0.0.1", NOW)


def test_a_start_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    """
    The folder gets its name when everything is in it.
    """
    half = tmp_path / "secure.new"
    half.mkdir()
    (half / "authority.key").write_text("half a k")
    files = prepare(tmp_path, "127.0.0.1", NOW)

    assert files.key_file.exists()
    assert not half.exists()


def test_a_damaged_key_is_named(tmp_path: Path) -> None:
    """
    With what to do.
    """
    prepare(tmp_path, "127.0.0.1", NOW)
    (tmp_path / "secure" / "authority.key").write_text("nonsense")

    with pytest.raises(ConfigError, match=r"authority\.key cannot be read: bring it back"):
        prepare(tmp_path, "127.0.0.1", NOW)


def test_no_tls_in_settings_means_plain() -> None:
    """
    What is not secure stays as it was.
    """
    assert not tls_settings({}).enable
