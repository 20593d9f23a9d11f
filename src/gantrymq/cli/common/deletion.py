"""Delete a topic or a group after a question to the user."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from gantrymq.cli.common.output import confirm
from gantrymq.client.admin.admin import Admin


def delete_confirmed(
    what: str,
    look: Callable[[Admin], Awaitable[str]],
    delete: Callable[[Admin], Awaitable[None]],
    *,
    namesrv: str | None,
    yes: bool,
) -> None:
    """Ask whether to delete `what`, and delete it; `look` returns what is deleted with it."""

    async def look_first() -> str:
        async with Admin(namesrv) as admin:
            return await look(admin)

    async def then_delete() -> None:
        async with Admin(namesrv) as admin:
            await delete(admin)

    confirm(f"delete {what} with {asyncio.run(look_first())}", yes=yes)
    asyncio.run(then_delete())
    print(f"{what} deleted", file=sys.stderr)
