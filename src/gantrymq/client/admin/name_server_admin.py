"""Administration of name servers: their settings, key-value table, and write permissions.

Name servers share nothing, so every change goes to each of them.
"""

from collections.abc import Mapping

from gantrymq.base.config import format_properties, parse_properties
from gantrymq.client.admin.admin_base import AdminBase
from gantrymq.client.admin.at_each import at_each
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import KvTable
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers import topics as t
from gantrymq.protocol.headers.base import Nothing


class NameServerAdmin(AdminBase):
    """Asks and changes all name servers."""

    @property
    def name_servers(self) -> list[str]:
        """The addresses of the name servers."""
        return self.instance.namesrv_addresses

    async def kv(self, namespace: str, key: str) -> str | None:
        """A value of the key-value table; None without one."""
        header, answer = await self.instance.call_namesrv(
            calls.GET_KV_CONFIG,
            t.KvRequest(namespace=namespace, key=key),
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        return header.value if answer.code == ResponseCode.SUCCESS else None

    async def kv_list(self, namespace: str) -> dict[str, str]:
        """All keys and values of a namespace."""
        _, answer = await self.instance.call_namesrv(
            calls.GET_KVLIST_BY_NAMESPACE,
            t.NamespaceRequest(namespace=namespace),
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        return fastjson.load_as(answer.body, KvTable).table if answer.body else {}

    async def put_kv(self, namespace: str, key: str, value: str) -> None:
        """Set a value in every name server."""
        header = t.PutKvRequest(namespace=namespace, key=key, value=value)

        async def put(address: str) -> None:
            await self.instance.call(address, calls.PUT_KV_CONFIG, header)

        await at_each(f"set {key} of {namespace}", self.name_servers, put)

    async def delete_kv(self, namespace: str, key: str) -> None:
        """Delete a value from every name server."""
        header = t.KvRequest(namespace=namespace, key=key)

        async def delete(address: str) -> None:
            await self.instance.call(address, calls.DELETE_KV_CONFIG, header)

        await at_each(f"delete {key} of {namespace}", self.name_servers, delete)

    async def name_server_configs(self) -> dict[str, dict[str, str]]:
        """The settings of every name server, by its address."""

        async def ask(address: str) -> dict[str, str]:
            _, answer = await self.instance.call(address, calls.GET_NAMESRV_CONFIG, Nothing())
            return parse_properties(answer.body.decode("utf-8", "replace"))

        return await at_each("ask for the settings", self.name_servers, ask)

    async def update_name_server_config(self, changes: Mapping[str, str]) -> None:
        """Change settings of every name server."""
        body = format_properties(changes).encode()

        async def update(address: str) -> None:
            await self.instance.call(address, calls.UPDATE_NAMESRV_CONFIG, Nothing(), body)

        await at_each(f"set {', '.join(changes)}", self.name_servers, update)

    async def wipe_write_permission(self, broker: str) -> dict[str, int]:
        """Take a broker out of all routes for producers; returns the topics by name server.

        It lasts until `add_write_permission`, or until the broker registers with a newer version
        of its topics.
        """
        header = t.BrokerNameRequest(broker_name=broker)

        async def wipe(address: str) -> int:
            answer, _ = await self.instance.call(address, calls.WIPE_WRITE_PERM_OF_BROKER, header)
            return answer.wipe_topic_count

        return await at_each(f"wipe write permission of {broker}", self.name_servers, wipe)

    async def add_write_permission(self, broker: str) -> dict[str, int]:
        """Give a broker back to producers; returns the topics by name server."""
        header = t.BrokerNameRequest(broker_name=broker)

        async def add(address: str) -> int:
            answer, _ = await self.instance.call(address, calls.ADD_WRITE_PERM_OF_BROKER, header)
            return answer.add_topic_count

        return await at_each(f"add write permission of {broker}", self.name_servers, add)
