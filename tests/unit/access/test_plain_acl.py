"""Access files: what they mean, and what is wrong with them."""

import pytest

from gantrymq.access.accounts import Permission, group_resource
from gantrymq.access.plain_acl import AclVersion, file_text, parse_file
from gantrymq.base.errors import ConfigError

ROCKETMQS_OWN = """\
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB
      - groupC=SUB

  - accessKey: rocketmq2
    secretKey: 12345678
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
"""
PUB, SUB, ANY = Permission.PUB, Permission.SUB, Permission.ANY


@pytest.mark.parametrize(
    "resource, permission, expected",
    [
        ("topicA", PUB, False), ("topicB", PUB, True), ("topicB", SUB, True),
        ("topicC", PUB, False), ("topicC", SUB, True), ("topicC", ANY, True),
        ("other", SUB, False), ("other", ANY, False),
        (group_resource("groupA"), SUB, False), (group_resource("groupB"), SUB, True),
        (group_resource("other"), SUB, True),
    ],
)  # fmt: skip
def test_rights_of_the_file_that_rocketmq_ships(
    resource: str, permission: Permission, expected: bool
) -> None:
    """
    A rule for the resource counts, else the default of topics or of groups.
    """
    plain, _ = parse_file("plain_acl.yml", ROCKETMQS_OWN).accounts

    assert expected == plain.may(resource, permission)


def test_an_admin_without_rules_may_do_everything() -> None:
    """
    With any rule of its own it is judged by its rules, as everybody is.
    """
    _, admin = parse_file("plain_acl.yml", ROCKETMQS_OWN).accounts
    ruled = parse_file("f", ROCKETMQS_OWN.replace("admin: false", "admin: true")).accounts[0]

    assert admin.may("anything", PUB)
    assert not ruled.may("anything", PUB)
    assert admin.white_addresses.matches("192.168.1.9")


@pytest.mark.parametrize(
    "before, after, line, words",
    [
        ("PUB|SUB\n      - topicC", "PUB|SUP\n      - topicC", 6, "'PUB|SUP' is no permission"),
        ("topicC=SUB", "topicC", 6, "'topicC' is no rule"),
        ("10.10.103.*", "10.10.103", 2, "no address and no pattern"),
        ("accessKey: rocketmq2", "accessKey: short", 22, "longer than 6"),
        ("accessKey: rocketmq2", "accessKey: RocketMQ", 22, "there twice"),
        ("defaultTopicPerm", "defaultTopicPrem", 6, "an account has no defaultTopicPrem"),
        ("accounts:", "accounts: {", 6, "no YAML"),
        ("admin: false", "admin: !!python/object:os.system x", 9, "no YAML"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(
    before: str, after: str, line: int, words: str
) -> None:
    """
    The line of the account or the place in it, and no secret key.
    """
    with pytest.raises(ConfigError) as refused:
        parse_file("acl.yml", ROCKETMQS_OWN.replace(before, after, 1))

    text = str(refused.value)
    assert words in text
    assert f"line {line}:" in text
    assert "12345678" not in text


def test_a_written_file_reads_as_before() -> None:
    """
    Accounts stay as they are, the version is a new one.
    """
    file = parse_file("f", ROCKETMQS_OWN)
    again = parse_file("f", file_text(file.whole, AclVersion(counter=3, timestamp=17)))

    assert (file.entries, file.white_addresses) == (again.entries, again.white_addresses)
    assert AclVersion(counter=3, timestamp=17) == again.version
    assert AclVersion() == file.version


def test_an_empty_file_has_no_accounts() -> None:
    """
    Nobody may do anything then.
    """
    assert [] == parse_file("f", "\n# nothing\n").accounts
