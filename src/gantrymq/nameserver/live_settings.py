"""The settings of a running name server, and changes to them."""

from gantrymq.base.config import as_text, convert, replace_properties
from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError, GantryError, ProtocolError
from gantrymq.base.files import load_text
from gantrymq.base.offload import Offload
from gantrymq.base.own_file import take_over
from gantrymq.base.saved import SavedFile
from gantrymq.base.telemetry import levels_changed
from gantrymq.base.telemetry_settings import without_secrets
from gantrymq.nameserver.config import NEXT_START, UNCHANGEABLE, NameServerConfig
from gantrymq.protocol.codes import ResponseCode


class NotChangeable(GantryError):
    code = ResponseCode.NO_PERMISSION


class NameServerSettings:
    """The settings of one running name server; a change is on disk before it is answered."""

    def __init__(self, config: NameServerConfig, disk: Disk, offload: Offload) -> None:
        self._config, self._disk = config, disk
        self._file = SavedFile(disk, offload, config.config_store_path)

    @property
    def in_force(self) -> dict[str, str]:
        """All present settings."""
        return as_text(self._config)

    @property
    def shown(self) -> dict[str, str]:
        """All of them, without what nobody may read."""
        return without_secrets(NameServerConfig, self.in_force)

    async def change(self, wanted: dict[str, str]) -> None:
        """Change settings, all or none; unknown keys are ignored."""
        if UNCHANGEABLE & wanted.keys():
            raise NotChangeable("Can not update config in black list.")
        known = {key: value.strip() for key, value in wanted.items() if key in self.in_force}
        if not known:
            return
        try:
            new = convert(NameServerConfig, self.in_force | known, {})
        except ConfigError as error:
            raise ProtocolError(f"not changed: {error}") from error
        path = self._config.config_store_path
        try:
            before = load_text(self._disk, path) or ""
            await self._file.save(replace_properties(before, known))
        except OSError as error:
            raise ProtocolError(
                f"not changed: {path} cannot be written: {error.strerror}"
            ) from error
        live = known.keys() - NEXT_START
        take_over(self._config, new, live)
        levels_changed(self._config, live)
