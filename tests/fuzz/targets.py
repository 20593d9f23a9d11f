"""What is fuzzed: every reader of bytes from outside, with specimens of what it reads.

A target ends in a value or in an error that is raised on purpose. Where there are two readers, they
must agree; what was read and can be written is read again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gantrymq.access.acl_bodies import new_user, policies_of
from gantrymq.access.addresses import parse_pattern
from gantrymq.access.credentials import Credentials
from gantrymq.access.plain_acl import parse_file
from gantrymq.access.policies import Action, Resource, ResourceType, UserAcl, judge
from gantrymq.access.signature import RequestSigner, SigningKey
from gantrymq.base.config import parse_properties
from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.filter.compiler import function_of
from gantrymq.filter.parser import parse as parse_sql
from gantrymq.kernel import batches as pure_batches
from gantrymq.kernel import dispatching as pure_dispatching
from gantrymq.kernel import frames as pure_frames
from gantrymq.kernel import records as pure_records
from gantrymq.kernel import sends as pure_sends
from gantrymq.kernel.send_runs import SendRules, SendRun
from gantrymq.model import TopicConfig
from gantrymq.protocol import batch, compression, fastjson, pop, properties, publishing, trace
from gantrymq.protocol.bodies import AclInfo, Heartbeat, LockRequest, RegisterBrokerBody, UserInfo
from gantrymq.protocol.command import BINARY_CODEC, Command, decode_header, encode
from gantrymq.protocol.headers.messages import PullRequest, SendRequest, SendRequestV2
from gantrymq.protocol.ids import parse_offset_msg_id, read_unique_id
from gantrymq.protocol.recall import RecallHandle
from gantrymq.protocol.record import decode_record, decode_records
from gantrymq.protocol.subscription import parse_tags
from gantrymq.replication.group.wire import FrameReader, Greeting, encode_frame
from gantrymq.replication.ha.wire import TRANSFER_HEAD, ReportReader, TransferReader
from gantrymq.replication.raft.messages import AppendRequest, HeartbeatRequest

fast: Any
try:
    from gantrymq.kernel import _fast as fast
except ImportError:  # no compiler here: the readable kernel is held to itself
    fast = None

KEY = "12345678"
SEND = Command(
    code=310,
    ext={"a": "group", "b": "orders", "e": "3", "g": "1700000000000", "i": "TAGS\x01a\x02"},
    body=b"hello" * 9,
)
BINARY_SEND = Command(code=310, ext=SEND.ext, body=SEND.body, codec=BINARY_CODEC, remark="why")
PLAIN = Command(code=310, ext={**SEND.ext, "i": "UNIQ_KEY\x01A1\x02TAGS\x01a"}, body=SEND.body)
BINARY_PLAIN = Command(code=310, ext=PLAIN.ext, body=SEND.body, codec=BINARY_CODEC)
TOPICS = {"orders": TopicConfig(topic_name="orders")}
SIGNED = Command(code=310, ext=dict(SEND.ext), body=SEND.body)
RequestSigner(Credentials("rocketmq2", KEY)).sign(SIGNED)
RECORD = bytes.fromhex(
    "00000078daa320a73610a686000000000000000000000000000000050000000000001000000000000000018bcfe568"
    "000a0000020000c3500000018bcfe56801c0a8000100002a9f000000000000000000000000000000056865"
    "6c6c6f01540017554e49515f4b4559014142430254414753015461674102"
)
BODIES = [
    b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[]}]}',
    b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7},"a":{"$ref":"$.offsetTable"}}',
    b"{0:'a',b:[1,,2.5e3,{}],\"\\u0041\":null}",
    b'{"clientID":7,"consumerDataSet":{"groupName":"g","consumeType":1,"subscriptionDataSet":'
    b'[{"topic":{{"a":1}:2},"codeSet":["7",1.5,null],"subVersion":"1,000"/* c */}]}}',
    b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1},"topicConfigTable":{}}}',
    b'{"consumerGroup":"g","clientId":"c","mqSet":[{"topic":"T","brokerName":"b","queueId":0}]}',
]
CONDITIONS = [
    b"a > 5 AND b = 'abc' OR NOT (c IS NULL) AND d BETWEEN 1 AND 2.5e3",
    b"a IN ('x', 'y') AND b NOT LIKE 'a_%!%' ESCAPE '!' AND c <> -0x1F",
    b"a CONTAINS 'x' OR b STARTSWITH 'y' OR c NOT ENDSWITH 'z' -- why\n OR TRUE = FALSE",
]
RULES = b"""globalWhiteRemoteAddresses:
  - 10.0.1-100.*
  - '*'
accounts:
  - accessKey: orders-app
    secretKey: 12345678
    whiteRemoteAddress: 10.{1,2}.3.*
    admin: false
    defaultTopicPerm: DENY
    topicPerms: [orders=PUB|SUB]
    groupPerms: [billing=SUB]
"""
POLICIES = [
    b'{"subject":"User:shop","policies":[{"policyType":"Custom","entries":[{"resource":"Topic:ord*",'
    b'"actions":["Pub","Sub"],"sourceIps":["10.0.0.0/8"],"decision":"Allow"}]}]}\x00Topic:orders',
    b'{"username":"shop","password":"s","userType":"Normal","userStatus":"enable"}\x00*',
]
_WAY: dict[str, Any] = {"group": "g", "term": 7, "sender": "n0", "receiver": "n1"}
RAFT = [
    encode_frame(
        Greeting(
            group="g",
            sender="n0",
            receiver="n1",
            members=("n0", "n1"),
            file_bytes=1 << 30,
            address="a:1",
            is_empty=True,
            challenge=b"x" * 32,
        )
    ),
    encode_frame(HeartbeatRequest(**_WAY, commit=1 << 40)),
    encode_frame(
        AppendRequest(**_WAY, start=8, start_term=1, size=5, epochs=(), commit=8), b"bytes"
    ),
]


class Target(NamedTuple):
    """One reader."""

    read: Callable[[bytes], None]
    specimens: Sequence[bytes]


def text_of(data: bytes) -> str:
    """Any bytes as text: what a JSON header may hold, half characters included."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def outcome(read: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives; of an error on purpose its type."""
    try:
        return read(*arguments)
    except GantryError as error:
        return type(error)


def read_frame(data: bytes) -> None:
    commands, used, error = pure_frames.cut_commands(bytearray(data), 1 << 20, 64)
    assert used <= len(data)
    assert error is None or isinstance(error, ProtocolError)
    assert all(isinstance(command.ext, dict) for command in commands)
    if fast is not None:
        compiled = fast.cut_commands(bytearray(data), 1 << 20, 64)
        assert (commands, used, type(error)) == (compiled[0], compiled[1], type(compiled[2]))
        read_runs(data, commands)
    for command in commands:
        SigningKey(KEY).verifies(command)
        if fast is not None:
            tail = b"CLUSTER\x01c\x02"
            assert pure_sends.read_send(command.ext, tail) == fast.read_send(command.ext, tail)
        for header in (SendRequest, SendRequestV2, PullRequest):
            outcome(header.parse, command.ext)


Tail: Any = (fast or pure_dispatching).QueueTail


class SendQueue(Tail):  # type: ignore[misc]
    """The end of a queue."""

    def __init__(self) -> None:
        self.topic_bytes, self.next = b"orders", 7


def place(run: Any) -> None:
    """Give the messages places in empty queues."""
    queues: dict[tuple[str, int], SendQueue] = {}
    run.place(queues, lambda *key: queues.setdefault(key, SendQueue()))


def read_runs(data: bytes, commands: list[Command]) -> None:
    """The compiled kernel gathers only what is plain, loses nothing, and stores and answers it as
    the readable one does."""
    rules = SendRules(TOPICS, b"CLUSTER\x01c\x02", bytes(8), 512, 4096, 8192)
    requests, count, _, _ = fast.cut_requests(data, 1 << 20, 64, rules, bytes(8))
    found: list[Command] = []
    for request in requests:
        if isinstance(request, Command):
            found.append(request)
            continue
        alone = SendRun(rules, bytes(8))
        assert all(alone.add(each) for each in request.commands())
        place(request)
        place(alone)
        written = fast.encode_records([request], 0, 1, bytes(8))
        assert written == pure_records.encode_records([alone], 0, 1, bytes(8))
        assert request.answers(0) == alone.answers(0)
        found += request.commands()
    assert (found, count) == (commands, len(commands))


def read_header(data: bytes) -> None:
    decode_header(data[0] & 1 if data else 0, data[1:])


def read_record(data: bytes) -> None:
    walk = pure_records.walk_records(data, 4096, len(data) + 8, True)
    assert walk.end <= 4096 + len(data)
    if fast is not None:
        assert walk == fast.walk_records(data, 4096, len(data) + 8, True)
    for message in decode_records(data):
        assert isinstance(message.properties, dict)
    decode_record(data)


def read_properties(data: bytes) -> None:
    found = properties.decode(data)
    assert found == properties.decode(properties.encode(found))
    parse_properties(text_of(data).encode("utf-8", "replace").decode())
    parse_tags(text_of(data))


def read_batch(data: bytes) -> None:
    tail = b"CLUSTER\x01c\x02"
    found = outcome(pure_batches.batch_items, data, tail, 9)
    if fast is not None:
        assert found == outcome(fast.batch_items, data, tail, 9)


def read_fastjson(data: bytes) -> None:
    fastjson.loads(data)
    for kind in (Heartbeat, RegisterBrokerBody, LockRequest):
        fastjson.load_as(data, kind)
        fastjson.load_request(data, kind)


def read_sql(data: bytes) -> None:
    condition, _, values = data.partition(b"\x00")
    matches = function_of(parse_sql(text_of(condition)).root)
    assert matches(b"a\x015\x02b\x01abc\x02") in (True, False)
    assert matches(values) in (True, False)


def read_access_file(data: bytes) -> None:
    parse_file("plain_acl.yml", text_of(data))


def read_address(data: bytes) -> None:
    pattern = parse_pattern(text_of(data))
    for address in ("10.0.0.1", "127.0.0.1", "::1", "fe80::1%eth0", ""):
        assert pattern.matches(address) in (True, False)


def read_policies(data: bytes) -> None:
    body, _, name = data.partition(b"\x00")
    policies = policies_of(fastjson.load_request(body, AclInfo).policies)
    acl = UserAcl("shop").with_policies(policies)
    wanted = Resource.parse(text_of(name)) or Resource(ResourceType.TOPIC, text_of(name))
    for address in ("10.0.0.1", "::1", ""):
        assert judge(acl, wanted, (Action.PUB,), address).allowed in (True, False)
    outcome(new_user, "shop", fastjson.load_request(body, UserInfo))


def read_raft(data: bytes) -> None:
    for _ in FrameReader().feed(data):
        pass


def read_ha(data: bytes) -> None:
    ReportReader().feed(data)
    whole = TransferReader().feed(data)
    reader = TransferReader()
    cut = [piece for at in range(0, len(data), 5) for piece in reader.feed(data[at : at + 5])]
    assert b"".join(piece for _, piece in whole) == b"".join(piece for _, piece in cut)


def read_small_texts(data: bytes) -> None:
    text = text_of(data)
    for read in (
        parse_offset_msg_id, read_unique_id, RecallHandle.decode, pop.Handle.parse, pop.parse_info,
    ):  # fmt: skip
        outcome(read, text)
    for read in (trace.decode, trace.decode_counts, pop.read_batch_ack, publishing.read_share,
                 publishing.read_decision):  # fmt: skip
        outcome(read, data)


def read_compressed(data: bytes) -> None:
    if data:
        compression.decompress(data[1:], compression.COMPRESSED | data[0] << 8 & 0x700)


def zipped(kind: str) -> bytes:
    body, flags = compression.compress(b"hello" * 20, kind)
    return bytes([flags >> 8 & 0x7]) + body


TARGETS: dict[str, Target] = {
    "frame": Target(
        read_frame,
        [
            encode(SEND) * 3,
            encode(BINARY_SEND) * 2,
            encode(SIGNED),
            encode(PLAIN) * 2,
            encode(BINARY_PLAIN) * 2,
        ],
    ),
    "header": Target(
        read_header, [b"\x00" + encode(SEND)[8:-45], b"\x01" + encode(BINARY_SEND)[8:-45]]
    ),
    "record": Target(read_record, [RECORD, RECORD * 3]),
    "properties": Target(read_properties, [b"TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01ABC\x02"]),
    "batch": Target(read_batch, [batch.encode([batch.Item(0, b"hello", b"TAGS\x01a\x02")] * 2)]),
    "fastjson": Target(read_fastjson, BODIES),
    "sql": Target(read_sql, [each + b"\x00a\x017\x02c\x01x\x02" for each in CONDITIONS]),
    "access-file": Target(read_access_file, [RULES]),
    "address": Target(read_address, [b"10.0.1-100.*", b"10.{1,2}.3.*", b"fe80:*:1-ffff::1", b"*"]),
    "policies": Target(read_policies, POLICIES),
    "raft": Target(read_raft, RAFT),
    "ha": Target(read_ha, [TRANSFER_HEAD.pack(64, 5) + b"bytes", TRANSFER_HEAD.pack(69, 0) * 2]),
    "small-texts": Target(
        read_small_texts,
        [
            b"C0A8000100002A9F0000000000001000",
            b"0 1700000000000 60000 3 0 broker-a 2 5",
            b"0 3 100;1 2 200",
            b"Pub\x011700000000000\x01region\x01group\x01topic\x01id\x01tags\x01keys\x01h\x015\x02",
            b'[{"topic":"T","brokerName":"b","queueId":0}]',
        ],
    ),
    "compressed": Target(read_compressed, [zipped("zlib"), zipped("lz4"), zipped("zstd")]),
}
ON_PURPOSE = GantryError
"""What a reader may raise; anything else is a fault."""
