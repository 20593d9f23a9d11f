"""Which groups read which topics by popping: messageRequestMode.json."""

from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import NotSaved, load_table
from gantrymq.model import RETRY_PREFIX
from gantrymq.protocol import fastjson
from gantrymq.protocol.pop import RequestMode, RequestModes


class ModeTable:
    """What was set for a topic and group; everybody else has the broker's default."""

    def __init__(self, config: BrokerConfig, disk: Disk, offload: Offload, directory: str) -> None:
        path = f"{directory}/messageRequestMode.json"
        self._file = SavedFile(disk, offload, path)
        self.all = load_table(disk, path, RequestModes)
        self._config = config

    def of(self, topic: str, group: str) -> RequestMode:
        found = self.all.message_request_mode_map.get(topic, {}).get(group)
        if found is not None:
            return found
        # Retry topics of pulling groups are read by their owners.
        config = self._config
        is_retry = topic.startswith(RETRY_PREFIX)
        return RequestMode(
            consumer_group=group,
            topic=topic,
            mode="PULL" if is_retry else config.default_message_request_mode,
            pop_share_queue_num=config.default_pop_share_queue_num,
        )

    async def put(self, mode: RequestMode) -> None:
        """On disk when this returns, or not changed at all."""
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
