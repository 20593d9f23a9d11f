"""A table in a JSON file: it changes in memory at once and on disk soon."""

import asyncio

from gantrymq.base.disk import Disk
from gantrymq.base.files import save_text
from gantrymq.base.offload import Offload


class SavedFile:
    """Writes the newest text of a table; changes that come during a write share the next one."""

    def __init__(self, disk: Disk, offload: Offload, path: str) -> None:
        self._disk, self._offload, self._path = disk, offload, path
        self._text = ""
        self._wanted = self._saved = 0
        self._turn = asyncio.Lock()

    async def save(self, text: str) -> None:
        """Wait until this text, or a newer one, is on disk. Raises OSError if that fails."""
        self._text = text
        self._wanted += 1
        mine = self._wanted
        async with self._turn:
            if self._saved >= mine:
                return
            version = self._wanted
            await self._offload.run(save_text, self._disk, self._path, self._text)
            self._saved = version
