"""Which groups pop which topics (messageRequestMode.json)."""

from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import NotSaved, load_table
from gantrymq.model import RETRY_PREFIX
from gantrymq.protocol import fastjson
from gantrymq.protocol.pop import RequestMode, RequestModes


class ModeTable:
    """The mode that was set for a topic and group, else the broker's default."""

    def __init__(self, config: BrokerConfig, disk: Disk, offload: Offload, directory: str) -> None:
        path = f"{directory}/messageRequestMode.json"
        self._file = SavedFile(disk, offload, path)
        self.all = load_table(disk, path, RequestModes)
        self._config = config

    def of(self, topic: str, group: str) -> RequestMode:
        found = self.all.message_request_mode_map.get(topic, {}).get(group)
        if found is not None:
            return found
        # The members that own the queues of a retry topic pull them.
        config = self._config
        is_retry = topic.startswith(RETRY_PREFIX)
        return RequestMode(
            consumer_group=group,
            topic=topic,
            mode="PULL" if is_retry else config.default_message_request_mode,
            pop_share_queue_num=config.default_pop_share_queue_num,
        )

    async def take_over(self, modes: RequestModes) -> None:
        """Take the table that a slave's master has."""
        if modes != self.all:
            await self._file.save(fastjson.dumps(modes).decode())
            self.all = modes

    async def put(self, mode: RequestMode) -> None:
        """Set a mode: on disk when this returns; if the disk fails, nothing changes."""
        rows = self.all.message_request_mode_map.setdefault(mode.topic, {})
        before = rows.get(mode.consumer_group)
        rows[mode.consumer_group] = mode
        try:
            await self._file.save(fastjson.dumps(self.all).decode())
        except OSError as error:
            if before is None:
                del rows[mode.consumer_group]
            else:
                rows[mode.consumer_group] = before
            raise NotSaved(
                f"the mode was not changed, its table cannot be saved: {error}"
            ) from error
