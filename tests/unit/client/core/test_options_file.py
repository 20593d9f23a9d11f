"""Options from a file, and the page that lists them."""

from pathlib import Path

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.client.core.options_file import load_options, reference

PAGE = Path(__file__).parents[4] / "docs" / "client-options.md"


def test_a_file_sets_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    """
    Each table is one option set.
    """
    file = tmp_path / "client.toml"
    file.write_text('[client]\nnamesrv = "h:1"\n[producer]\nsend_timeout_ms = 5000\n')
    found = load_options(file)

    assert ("h:1", 5000, 2) == (
        found.client.namesrv,
        found.producer.send_timeout_ms,
        found.producer.retries,
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("[producer]\nsend_timeout = 1\n", r"did you mean send_timeout_ms\?"),
        ("[produce]\n", r"did you mean \[producer\]\?"),
        ('[producer]\nsend_timeout_ms = "x"\n', "Expected `int`"),
        ("[client\n", "cannot read"),
    ],
)
def test_a_mistake_is_named(text: str, words: str, tmp_path: Path) -> None:
    """
    With the nearest name where there is one.
    """
    file = tmp_path / "client.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_options(file)


def test_the_reference_page_is_what_the_code_says() -> None:
    """
    The page is printed by `python -c "from gantrymq.client.core.options_file import reference;
    print(reference(), end='')" > docs/client-options.md`.
    """
    assert reference() == PAGE.read_text()
