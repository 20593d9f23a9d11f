"""No text of a value tells the secrets in it: such texts end up in logs and tracebacks."""

import dataclasses
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gantrymq.access.credentials import Credentials
from gantrymq.access.plain_acl import AccountEntry, parse_file
from gantrymq.access.users import User
from gantrymq.base.config import WrittenSettings
from gantrymq.base.telemetry_settings import TelemetrySettings, without_secrets
from gantrymq.base.tls.settings import TlsParty, TlsSettings
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.cli.mqadmin.command import Invocation
from gantrymq.client.core.options import ClientOptions
from gantrymq.console.access.user import Role
from gantrymq.console.access.users_file import KnownUser
from gantrymq.console.api.rights.account_changes import AccountChanges, NewAccount
from gantrymq.console.api.rights.members import MemberRules
from gantrymq.console.api.rights.user_changes import NewUser, UserChanges
from gantrymq.console.settings import ConsoleSettings
from gantrymq.metrics.http import HttpRequest
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.protocol.bodies import AccessConfigBody, UserInfo
from gantrymq.protocol.headers.access import AccessConfigRequest
from gantrymq.remoting.limits import BrokerLimits, ConnectionLimits, NameServerLimits

SECRET = "s3cret-k3y"
PAIR = f'{{"accessKey":"broker","secretKey":"{SECRET}"}}'
USER = f'{{"username":"operator","password":"{SECRET}"}}'
HEADER = f"authorization:{SECRET}"
FILE = f"accounts:\n- accessKey: orders-app\n  secretKey: {SECRET}\nelse: {SECRET}\n"
PARTY = TlsParty(cert_path="a", key_path="b", key_password=SECRET)
CREDENTIALS = Credentials("orders-app", SECRET, SECRET)
TELEMETRY = TelemetrySettings(metrics_grpc_exporter_header=HEADER)
ACCOUNT = {"accessKey": "orders-app", "secretKey": SECRET}
SOURCES = Path(__file__).parents[2] / "src"

HOLDERS: tuple[Any, ...] = (
    CREDENTIALS,
    ClientOptions(credentials=CREDENTIALS),
    PARTY,
    TlsSettings(server=PARTY, client=PARTY),
    TELEMETRY,
    ConnectionLimits(metrics_grpc_exporter_header=HEADER),
    BrokerLimits(metrics_grpc_exporter_header=HEADER),
    NameServerLimits(metrics_grpc_exporter_header=HEADER),
    NameServerConfig(metrics_grpc_exporter_header=HEADER),
    ConsoleSettings(clusters=(), data=Path("data"), tls_key_password=SECRET, logs=TELEMETRY),
    BrokerConfig(
        metrics_grpc_exporter_header=HEADER,
        init_authentication_user=USER,
        inner_client_authentication_credentials=PAIR,
    ),
    WrittenSettings({"initAuthenticationUser": USER}, {"initAuthenticationUser": "a file"}),
    parse_file("plain_acl.yml", FILE),
    AccountEntry(access_key="orders-app", secret_key=SECRET),
    User("operator", SECRET),
    UserInfo(username="operator", password=SECRET),
    AccessConfigRequest(access_key="orders-app", secret_key=SECRET),
    AccessConfigBody(plain_access_configs=[ACCOUNT]),
    KnownUser(Role.ADMIN, SECRET),
    NewUser(cluster="a", user="operator", password=SECRET),
    UserChanges(cluster="a", user="operator", password=SECRET),
    NewAccount(cluster="a", access_key="orders-app", secret_key=SECRET),
    AccountChanges(cluster="a", access_key="orders-app", secret_key=SECRET),
    MemberRules(
        broker="a",
        id=0,
        address="10.0.0.1:10911",
        settings={"initAuthenticationUser": USER},
        accounts={"orders-app": ACCOUNT},
    ),
    Invocation(None, None, {"password": SECRET}),  # type: ignore[arg-type]
    HttpRequest("GET", "/metrics", {"authorization": SECRET}, keeps_open=True),
)
"""A value of each class that holds secrets."""


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: type(holder).__name__)
def test_no_text_of_a_value_tells_a_secret(holder: Any) -> None:
    """
    Neither `repr`, nor `str`, nor the text inside of another value.
    """
    texts = (repr(holder), str(holder), f"{holder}", repr([holder]))

    assert not [text for text in texts if SECRET in text]


def test_what_is_not_secret_is_told() -> None:
    """
    Whoever reads a text of settings finds all others, and which secrets are not set.
    """
    text = repr(BrokerConfig(broker_name="b7", init_authentication_user=USER))

    assert "BrokerConfig(" == text[:13]
    assert "broker_name='b7'" in text
    assert "init_authentication_user=(hidden)" in text
    assert "inner_client_authentication_credentials=''" in text


def test_settings_as_text_hide_the_same() -> None:
    """
    What tools are shown, and what `mqbroker -p` prints, hides what the text of a value hides.
    """
    given = {
        "initAuthenticationUser": USER,
        "innerClientAuthenticationCredentials": PAIR,
        "metricsGrpcExporterHeader": HEADER,
        "brokerName": "b7",
    }

    shown = without_secrets(BrokerConfig, given)

    assert ["brokerName"] == [key for key, value in shown.items() if value == given[key]]


NAME = re.compile(
    r"password|secret_key|security_token|authentication_(user|credentials)$|exporter_header$"
)
"""Fields that hold secrets have such names."""


def _classes_with_secrets() -> Iterator[type]:
    """All classes of structs and dataclasses that have a field with the name of a secret."""
    for path in sorted((SOURCES / "gantrymq").rglob("*.py")):
        if not NAME.search(path.read_text()) or path.name == "__main__.py":
            continue
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        for kind in vars(importlib.import_module(name)).values():
            if isinstance(kind, type) and kind.__module__ == name and _has_secrets(kind):
                yield kind


def _has_secrets(kind: type) -> bool:
    names = getattr(kind, "__struct_fields__", ())
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
    return any(map(NAME.search, names))


def test_every_class_with_a_secret_is_looked_at() -> None:
    """
    A new class with such a field fails here until it stands in the list above.
    """
    looked_at = {type(holder) for holder in HOLDERS}

    assert [] == [kind for kind in _classes_with_secrets() if kind not in looked_at]
