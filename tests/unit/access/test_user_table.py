"""Users and policies in their file."""

import asyncio
import errno

import pytest

from gantrymq.access.denials import PolicyDenied
from gantrymq.access.policies import AclPolicy, Action, PolicyEntry, PolicyType, Resource
from gantrymq.access.user_rules import UserRules
from gantrymq.access.user_table import UsersNotSaved, UserTable
from gantrymq.access.users import User, UserStatus, UserType
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import read_file
from gantrymq.base.offload import InlineOffload
from gantrymq.protocol.bodies import UserInfo
from gantrymq.testing.disk import MemoryDisk

PATH = "/store/config/access.json"


def opened(disk: MemoryDisk) -> UserTable:
    return UserTable(disk, InlineOffload(), PATH, UserRules("DefaultCluster"))


def policy(text: str) -> AclPolicy:
    resource = Resource.parse(text)
    assert resource is not None
    return AclPolicy(PolicyType.CUSTOM, (PolicyEntry(resource, (Action.PUB,), True, ("::1",)),))


def test_what_is_changed_is_there_after_a_start() -> None:
    """
    Users with type and status, policies with type, actions and sources.
    """
    disk = MemoryDisk()
    table = opened(disk)
    table.begin([User("root", "first", UserType.SUPER)])

    async def change() -> None:
        await table.create_user(User("shop", "second"))
        await table.update_user("shop", UserInfo(user_status="disable"), by_super=False)
        await table.add_policies("shop", [policy("Topic:orders"), policy("Group:b*")])

    asyncio.run(change())
    again = opened(disk).rules

    assert table.rules == again
    assert UserStatus.DISABLE is again.users["shop"].status
    assert ["Topic:orders", "Group:b*"] == [
        str(entry.resource) for entry in again.acls["shop"].policies[0].entries
    ]


def test_a_full_disk_changes_nothing() -> None:
    """
    Neither in force nor on disk, and the caller is told.
    """
    disk = MemoryDisk()
    table = opened(disk)
    table.begin([User("root", "first", UserType.SUPER)])
    before = table.rules
    disk.capacity = 0

    with pytest.raises(UsersNotSaved, match="nothing was changed"):
        asyncio.run(table.create_user(User("shop", "second")))
    assert before is table.rules
    disk.capacity = 1 << 30
    assert ["root"] == list(opened(disk).rules.users)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename"])
def test_what_cannot_be_saved_is_not_changed(operation: str, number: int) -> None:
    """
    Whatever the disk refuses; the next change is made when it obeys again.
    """
    disk = MemoryDisk()
    table = opened(disk)
    table.begin([User("root", "first", UserType.SUPER)])
    before = table.rules
    disk.fault = lambda name, path: OSError(number, "no", path) if name == operation else None

    with pytest.raises(UsersNotSaved, match="nothing was changed"):
        asyncio.run(table.create_user(User("shop", "second")))
    assert before is table.rules
    disk.fault = None
    assert ["root"] == list(opened(disk).rules.users)
    asyncio.run(table.create_user(User("shop", "second")))
    assert ["root", "shop"] == list(opened(disk).rules.users)


def test_a_damaged_file_of_users_is_refused() -> None:
    """
    Whichever bit turns over: an error without a password, or as many users with as many policies.
    """
    disk = MemoryDisk()
    table = opened(disk)
    table.begin([User("root", "pa55word", UserType.SUPER), User("shop", "pa55word")])
    asyncio.run(table.add_policies("shop", [policy("Topic:orders")]))
    refusals = []
    for at in range(len(read_file(disk, PATH))):
        for bit in range(8):
            disk.flip_bit(PATH, at, bit)
            try:
                rules = opened(disk).rules
                assert (2, 1) == (len(rules.users), len(rules.acls))
            except ConfigError as error:
                refusals.append(str(error))
            disk.flip_bit(PATH, at, bit)

    assert len(refusals) > len(read_file(disk, PATH))
    assert all(f"{PATH}.bak is the file before" in text for text in refusals)
    assert not any("pa55word" in text for text in refusals)


def test_changes_at_the_same_time_are_all_kept() -> None:
    """
    Each is made on what the one before it left.
    """
    table = opened(MemoryDisk())
    table.begin([User("shop", "first")])
    seen: list[int] = []
    table.on_change.append(lambda rules: seen.append(len(rules.users)))

    async def change() -> None:
        names = [f"user-{number}" for number in range(5)]
        await asyncio.gather(
            *(table.create_user(User(name, "x")) for name in names),
            *(table.add_policies("shop", [policy(f"Topic:{name}")]) for name in names),
        )
        with pytest.raises(PolicyDenied, match="The user is existed"):
            await table.create_user(User("user-3", "y"))

    asyncio.run(change())

    assert 6 == len(table.rules.users)
    assert 5 == len(table.rules.acls["shop"].policies[0].entries)
    assert 10 == len(seen)
