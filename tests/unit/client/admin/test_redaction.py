"""What is removed from settings and logs before they leave a machine, and what stays."""

import pytest

from gantrymq.client.admin.bundle.redaction import redact, redact_text


@pytest.mark.parametrize(
    "text, left",
    [
        ("secretKey=hunter2", "secretKey=***"),
        ("acl.access_key = hunter2 next", "acl.access_key = *** next"),
        ('{"password":"hunter2","x":1}', '{"password":"***","x":1}'),
        ("token: 'hunter2'", "token: '***'"),
        ("GET http://u:hunter2@host/p", "GET http://***@host/p"),
        ("Authorization: Bearer hunter2", "Authorization: ***"),
        ("url?token=hunter2&a=b", "url?token=***&a=b"),
        ("ROCKETMQ_SECRET_KEY=hunter2", "ROCKETMQ_SECRET_KEY=***"),
        ("10.0.0.1:9876;10.0.0.2:9876", "10.0.0.1:9876;10.0.0.2:9876"),
        ("brokerName=broker-a", "brokerName=broker-a"),
        ("a token was sent", "a token was sent"),
        ("password=", "password="),
    ],
)
def test_text_keeps_everything_but_secrets(text: str, left: str) -> None:
    """
    Names stay, values of names that look like secrets go, and credentials of URLs.
    """
    assert left == redact_text(text)


def test_values_are_hidden_in_all_depth() -> None:
    """
    In lists and tables; a topic that is called like a secret keeps its settings.
    """
    value = {
        "accessKey": "hunter2",
        "list": [{"dbPassword": 5}, "x://a:hunter2@h"],
        "token": {"perm": 6},
        "secret": "",
    }
    assert {
        "accessKey": "***",
        "list": [{"dbPassword": "***"}, "x://***@h"],
        "token": {"perm": 6},
        "secret": "",
    } == redact(value)


def test_a_long_line_takes_no_time() -> None:
    """
    Logs may have bodies of a megabyte in one line.
    """
    assert redact_text("x" * 1_000_000) == "x" * 1_000_000
