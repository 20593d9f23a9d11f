"""Answers to sends, with the region of the setting `regionId`."""

from collections.abc import Callable
from typing import Final

from gantrymq.kernel import send_answer, stored_answer
from gantrymq.protocol import properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import RESPONSE_FLAG, Command, encode
from gantrymq.protocol.ids import offset_msg_id
from gantrymq.protocol.trace import DEFAULT_REGION
from gantrymq.store.append import PutStatus

TRACED: Final = "true"

CODES = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.PROPERTIES_SIZE_EXCEEDED: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
    PutStatus.CREATE_FILE_FAILED: ResponseCode.SYSTEM_ERROR,
    PutStatus.PAGECACHE_BUSY: ResponseCode.SYSTEM_BUSY,
    PutStatus.UNKNOWN_ERROR: ResponseCode.SYSTEM_ERROR,
}
"""How storing ended, as the code of the answer."""

StoredAnswer = Callable[[int, int, int, bytes, int, int, int, str], bytes]
"""Codec, code, opaque, store host, log offset, queue, queue offset and unique key to a frame."""
SendAnswer = Callable[[int, int, int, str, int, int, str], bytes]
"""The same with the message's id, or the ids of a batch, in place of host and log offset."""


def region_fields(region: str) -> dict[str, str]:
    """The fields of every answer to a send."""
    return {properties.MSG_REGION: region, properties.TRACE_ON: TRACED}


def answers_in(region: str) -> tuple[StoredAnswer, SendAnswer]:
    """The encoders of answers for a region. The kernel's encoders know only the default region."""
    if region == DEFAULT_REGION:
        return stored_answer, send_answer
    fields = region_fields(region)

    def answer(
        codec: int,
        code: int,
        opaque: int,
        msg_id: str,
        queue_id: int,
        queue_offset: int,
        unique_key: str,
    ) -> bytes:
        ext = {
            **fields,
            "msgId": msg_id,
            "queueId": str(queue_id),
            "queueOffset": str(queue_offset),
        }
        if unique_key:
            ext["transactionId"] = unique_key
        return encode(Command(code=code, ext=ext, flag=RESPONSE_FLAG, opaque=opaque, codec=codec))

    def answer_stored(
        codec: int,
        code: int,
        opaque: int,
        store_host: bytes,
        physical_offset: int,
        queue_id: int,
        queue_offset: int,
        unique_key: str,
    ) -> bytes:
        msg_id = offset_msg_id(store_host, physical_offset)
        return answer(codec, code, opaque, msg_id, queue_id, queue_offset, unique_key)

    return answer_stored, answer


def limit_of(status: PutStatus, remark: str) -> str | None:
    """The limit for which the store refused; None if it was something else."""
    if status is PutStatus.MESSAGE_ILLEGAL and remark.startswith("a body of"):
        return "maxMessageSize"
    if status is PutStatus.PAGECACHE_BUSY:
        late = remark.startswith("[TIMEOUT_CLEAN_QUEUE]")
        return "waitTimeMillsInSendQueue" if late else "osPageCacheBusyTimeOutMills"
    return None
