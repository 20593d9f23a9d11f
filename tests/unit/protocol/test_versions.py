"""RocketMQ's names of version numbers."""

import pytest

from gantrymq.protocol.versions import version_name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (194, "V3_9_1_SNAPSHOT"),
        (213, "V4_0_0"),
        (407, "V4_9_7"),
        (409, "V4_9_8"),
        (413, "V5_0_0"),
        (479, "V5_3_3"),
        (513, "V5_5_0"),
        (611, "V5_9_9"),
        (612, "HIGHER_VERSION"),
        (9999, "HIGHER_VERSION"),
        (121, "V3_x (121)"),
    ],
)
def test_a_number_has_a_name(number: int, name: str) -> None:
    """
    The ones that RocketMQ's MQVersion gives.
    """
    assert name == version_name(number)
