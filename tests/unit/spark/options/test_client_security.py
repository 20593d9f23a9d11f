"""Key pairs and TLS of a query: options name files, and a secret is never an option."""

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.client.core.tls import network_of
from gantrymq.spark.client import client_options
from gantrymq.spark.options.client_security import UNSECURED, ClientSecurity
from gantrymq.spark.options.sink_options import parse_sink_options
from gantrymq.spark.options.source_parser import parse_source_options

CLUSTER = {"nameserver": "host:9876", "topic": "orders"}


def security_of(**options: str) -> list[ClientSecurity]:
    """What source and sink make of the same options."""
    given = {**CLUSTER, **options}
    return [
        parse_source_options(given).cluster.security,
        parse_sink_options(given, streaming=False).security,
    ]


def test_source_and_sink_take_the_same_options() -> None:
    """Spark's lower-case names mean the same to both."""
    wanted = ClientSecurity(credentials_file="/keys.yml", use_tls=True, tls_config="/tls")
    found = security_of(credentialsfile="/keys.yml", usetls="true", tlsconfigfile="/tls")

    assert found == [wanted, wanted]
    assert security_of() == [UNSECURED, UNSECURED]


@pytest.mark.parametrize("option", ["accessKey", "secretKey", "securityToken", "SECRETKEY"])
def test_a_secret_as_an_option_is_refused(option: str) -> None:
    """The error says where to put it instead, and does not repeat it."""
    for parse in (parse_source_options, lambda given: parse_sink_options(given, streaming=True)):
        with pytest.raises(ConfigError, match="option credentialsFile") as refused:
            parse({**CLUSTER, option: "hunter2"})
        assert "hunter2" not in str(refused.value)


def test_contradictions_are_refused() -> None:
    """A file for TLS without TLS, and a word that is neither true nor false."""
    with pytest.raises(ConfigError, match="tlsConfigFile is for useTLS=true"):
        security_of(tlsConfigFile="/tls", useTLS="false")
    with pytest.raises(ConfigError, match="useTLS"):
        security_of(useTLS="perhaps")


def test_files_are_named_to_the_client_that_reads_them() -> None:
    """A file for TLS turns TLS on; nothing given leaves all to the environment."""
    made = client_options("a:1", ClientSecurity(credentials_file="/keys.yml", tls_config="/tls"))
    plain = client_options("a:1")

    assert (made.credentials, made.key_file) == (None, "/keys.yml")
    assert (made.use_tls, made.tls_config) == (True, "/tls")
    assert (plain.key_file, plain.use_tls, plain.tls_config) == (None, None, None)


def test_a_missing_file_is_named() -> None:
    """An executor without the file says which one."""
    options = client_options("a:1", ClientSecurity(credentials_file="/nowhere/keys.yml"))
    with pytest.raises(ConfigError, match=r"cannot read /nowhere/keys\.yml"):
        network_of(options)
