"""A slave's connection to the remoting port of its master."""

import zlib
from collections.abc import Callable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network, split_address
from gantrymq.broker.announce import Announcer
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.own_key import own_signer
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import KvTable
from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.copies import IntroduceSlaveRequest
from gantrymq.remoting.connection import Connection
from gantrymq.replication.ha.slave import REPORT_SECONDS
from gantrymq.store.writing.log_copy import LogCopy

CONNECT_SECONDS_MAX: Final = 3.0
CALL_SECONDS_MAX: Final = 5.0
TAIL_BYTES: Final = 64 << 10


class MasterRefused(GantryError):
    """The master answered with an error."""

    answer_code: int = -1
    """Its answer, if it was one."""


class LogRefused(MasterRefused):
    """The master has another log than this slave."""


class MasterLink:
    """Asks the master; connects when it has to."""

    def __init__(
        self,
        config: BrokerConfig,
        announcer: Announcer,
        network: Network,
        leader: Callable[[], str | None] | None = None,
    ) -> None:
        """`leader` of a raft group's follower: it knows its master better than name servers do."""
        self._config, self._announcer, self._network = config, announcer, network
        self._leader = leader
        self._connection: Connection | None = None
        self._address = ""
        self._tried: str | None = None
        """The HA port that was given out last."""

    @property
    def ha_address(self) -> str | None:
        """The master's HA port; None while no name server knows the master.

        Name servers are asked again then, and when the same address is asked for again: the master
        may be at another one by now. They tell it in the answer to a registration.
        """
        if self._config.ha_master_address:
            return self._config.ha_master_address
        master = self._announcer.master
        known = master.ha_server_addr if master is not None else None
        if not known or known == self._tried:
            self._announcer.announce_all()
        self._tried = known
        return known or None

    @property
    def address(self) -> str | None:
        """The master's port for clients; None while no name server knows it."""
        if self._leader is not None:
            return self._leader()
        master = self._announcer.master
        return master.master_addr if master is not None else None

    async def call(
        self, code: RequestCode, ext: dict[str, str] | None = None, body: bytes = b""
    ) -> Command:
        """The master's answer; MasterRefused if it is an error."""
        connection = await self.connect()
        command = Command(code=code, ext=ext or {}, body=body)
        answer = await connection.call(command, CALL_SECONDS_MAX)
        if answer.code != ResponseCode.SUCCESS:
            text = f"{code.name} was refused with {answer.code}: {answer.remark}"
            refused = MasterRefused(text)
            refused.answer_code = answer.code
            raise refused
        return answer

    async def log_min(self) -> int:
        """The first offset of the master's log; 0 if the master cannot be asked."""
        try:
            answer = await self.call(RequestCode.GET_BROKER_RUNTIME_INFO)
            figures = fastjson.load_as(answer.body, KvTable).table
            return int(figures.get("commitLogMinOffset", 0))
        except (GantryError, OSError, ValueError):
            return 0

    async def introduce(self, copy: LogCopy, ha_client: tuple[str, int], file_bytes: int) -> float:
        """Tell a master of ours which HA connection is this slave's.

        Returns how many seconds at most it lets pass without a heartbeat, 0 if it promises nothing.
        A Java master does not know the request. It takes whoever connects.
        """
        config, tail = self._config, copy.tail(TAIL_BYTES)
        header = IntroduceSlaveRequest(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=config.broker_id,
            ha_client=f"{ha_client[0]}:{ha_client[1]}",
            file_bytes=file_bytes,
            log_end=copy.end,
            tail_bytes=len(tail),
            tail_crc=zlib.crc32(tail),
            wants_all=config.ha_copy_whole_log,
            report_ms=int(REPORT_SECONDS * 1000),
        )
        if self.address is None:
            return 0.0  # haMasterAddress names a master that no name server knows
        connection = await self.connect()
        command = Command(code=c.INTRODUCE_SLAVE.code, ext=header.to_ext())
        answer = await connection.call(command, CALL_SECONDS_MAX)
        if answer.code == ResponseCode.LOG_DIFFERS:
            raise LogRefused(f"the master refuses this slave: {answer.remark}")
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED):
            raise MasterRefused(f"the master refuses this slave: {answer.remark}")
        return c.INTRODUCE_SLAVE.response.parse(answer.ext).heartbeat_ms / 1000

    async def connect(self) -> Connection:
        """The connection to the master's port for clients."""
        address = self.address
        if address is None:
            raise MasterRefused("no name server knows the master")
        known = self._connection
        if known is not None and known.open and address == self._address:
            return known
        self.close()
        host, port = split_address(address)
        self._connection = await self._network.connect(
            host, port, lambda: Connection(sign=own_signer(self._config)), CONNECT_SECONDS_MAX
        )
        self._address = address
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
