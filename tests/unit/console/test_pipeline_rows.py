"""What a job of a pipeline says at its end."""

import pytest

from gantrymq.console.api.pipelines.command import shown_row


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('{"rows":50,"files":2,"note":null,"table":"/lake"}', "rows: 50, files: 2, table: /lake"),
        ("/lake/reports/today/report.html", "/lake/reports/today/report.html"),
        ("14", "14"),
    ],
)
def test_a_row_is_named_figures(line: str, shown: str) -> None:
    """Without what nobody knows; any other line stays as it is."""
    assert shown_row(line) == shown
