"""Where a key pair comes from, and that its secret stays in it."""

import pickle
from pathlib import Path

import pytest

from gantrymq.access.credentials import Credentials
from gantrymq.access.key_sources import credentials_of_environment, credentials_of_file
from gantrymq.access.signature import SigningKey
from gantrymq.base.errors import ConfigError
from gantrymq.client.core.options import ClientOptions


def test_the_secret_is_in_no_text() -> None:
    """
    Neither of the pair itself nor of what holds it; a copy for another process has it.
    """
    pair = Credentials("orders-app", "s3cret-key", "t0ken")
    texts = [repr(pair), str(pair), f"{pair}", repr(ClientOptions(credentials=pair))]
    texts.append(repr(SigningKey("s3cret-key")))

    assert not [text for text in texts if "s3cret" in text or "t0ken" in text]
    assert pair == pickle.loads(pickle.dumps(pair))


def test_the_environment_has_both_keys_or_none() -> None:
    """
    Half a pair would be sent unsigned, and refused for a reason that nobody understands.
    """
    both = {"ROCKETMQ_ACCESS_KEY": "orders-app", "ROCKETMQ_SECRET_KEY": "12345678"}

    assert Credentials("orders-app", "12345678") == credentials_of_environment(both)
    assert credentials_of_environment({}) is None
    with pytest.raises(ConfigError, match="set both"):
        credentials_of_environment({"ROCKETMQ_ACCESS_KEY": "orders-app"})


def test_a_file_is_like_rocketmqs_tools_yml(tmp_path: Path) -> None:
    """
    Numbers count as text; an error does not quote the file.
    """
    file = tmp_path / "tools.yml"
    file.write_text("accessKey: rocketmq2\nsecretKey: 12345678\n")
    assert Credentials("rocketmq2", "12345678") == credentials_of_file(file)

    for damaged in ("accessKey: rocketmq2\n", "secretKey: [s3cret\n", "s3cret"):
        file.write_text(damaged)
        with pytest.raises(ConfigError) as refused:
            credentials_of_file(file)
        assert "s3cret" not in str(refused.value)
