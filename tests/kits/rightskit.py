"""Clusters with access control, and what their brokers have, for tests of the console.

Clients find the key of an admin in the environment, and so does the console.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from consolekit import NAME

from gantrymq.access.credentials import Credentials
from gantrymq.base.network import free_port
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.options import ClientOptions
from gantrymq.protocol import calls
from gantrymq.protocol.headers.topics import RegisterBrokerRequest
from gantrymq.testing.threaded import GantryCluster

ROOT, ROOT_SECRET = "root-user", "root-secret"
INNER: Final = '{"accessKey":"inner-user","secretKey":"inner-secret"}'
BY_USERS: Final[dict[str, Any]] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": f'{{"username":"{ROOT}","password":"{ROOT_SECRET}"}}',
    "inner_client_authentication_credentials": INNER,
}
ACCESS_FILE: Final = f"""\
globalWhiteRemoteAddresses: [10.9.9.*]
accounts:
  - {{accessKey: {ROOT}, secretKey: {ROOT_SECRET}, admin: true}}
  - {{accessKey: inner-user, secretKey: inner-secret, admin: true}}
  - accessKey: shop-app
    secretKey: shop-secret
    whiteRemoteAddress: 10.0.5.7
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms: [orders=PUB|SUB, prices=SUB]
    groupPerms: [billing=SUB]
"""
RIGHTS: Final = f"/clusters/{NAME}/rights"
PAGE: Final = f"/c/{NAME}/rights"


@contextmanager
def cluster_with_users(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[GantryCluster]:
    """Brokers with users of 5.3."""
    with _running(monkeypatch, **BY_USERS, **options) as cluster:
        yield cluster


@contextmanager
def cluster_with_accounts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[GantryCluster]:
    """Two brokers with access files of 4.9, which are the same and lie apart."""
    files = [folder / name / "plain_acl.yml" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(ACCESS_FILE)
    settings = {
        "acl_enable": True,
        "acl_file": str(files[0]),
        "inner_client_authentication_credentials": INNER,
    }
    with _running(monkeypatch, brokers=2, **settings) as cluster:
        restart(cluster, "broker-b", acl_file=str(files[1]))
        yield cluster


@contextmanager
def _running(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[GantryCluster]:
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", ROOT)
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", ROOT_SECRET)
    cluster = GantryCluster(**options)
    try:
        yield cluster
    finally:
        cluster.close()


def restart(cluster: GantryCluster, name: str, **settings: Any) -> None:
    """Start a broker again with other settings."""
    cluster.call(cluster.cluster.stop_broker(name))
    cluster.cluster.reconfigure(name, **settings)
    cluster.call(cluster.cluster.start_broker(name))


def break_disk(cluster: GantryCluster, name: str) -> None:
    """Let a broker fail to write its file of users: a folder lies where the new file would."""
    folder = Path(cluster.cluster.config_of(name).store_path_root_dir) / "config"
    (folder / "access.json.tmp").mkdir(parents=True)


@contextmanager
def dead_broker(cluster: GantryCluster, name: str) -> Iterator[None]:
    """A broker that name servers know, and on whose port nobody listens."""
    header = RegisterBrokerRequest(
        broker_name=name,
        broker_addr=f"127.0.0.1:{free_port('127.0.0.1')}",
        cluster_name="DefaultCluster",
        broker_id=0,
    )
    admin = _admin(cluster)
    cluster.call(admin.start())
    try:
        cluster.call(admin.instance.call(cluster.namesrv, calls.REGISTER_BROKER, header))
        yield
    finally:
        cluster.call(admin.close())  # the name server forgets it with its connection


def address(cluster: GantryCluster, name: str = "broker-a") -> str:
    return f"127.0.0.1:{cluster.cluster.config_of(name).listen_port}"


def _admin(cluster: GantryCluster) -> Admin:
    return Admin(cluster.namesrv, client=ClientOptions(credentials=Credentials(ROOT, ROOT_SECRET)))


def told(cluster: GantryCluster, call: str, name: str, *values: Any, **named: Any) -> Any:
    """What a method of the admin client answers about one broker, asked with the first key."""
    return with_admin(
        cluster, lambda admin: getattr(admin, call)(address(cluster, name), *values, **named)
    )


def with_admin(cluster: GantryCluster, work: Callable[[Admin], Awaitable[Any]]) -> Any:
    """What becomes of a question of an admin with the first key."""

    async def main() -> Any:
        async with _admin(cluster) as admin:
            return await work(admin)

    return asyncio.run(main())
