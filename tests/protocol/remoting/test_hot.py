"""What is read and written by hand is what the declarations say."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.errors import MalformedFrame
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import BINARY, JSON, Command, decode, encode, lead
from rockgate.protocol.remoting.headers.pull import PulledHeader, PullHeader
from rockgate.protocol.remoting.headers.send import SendHeader, SendHeaderV2, SentHeader
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader
from rockgate.protocol.remoting.hot import answers, requests
from rockgate.protocol.remoting.hot.sends import SendHead

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
SEND_FIELDS = {
    "producer_group": TEXTS,
    "topic": TEXTS,
    "default_topic": TEXTS,
    "default_topic_queue_nums": I32,
    "queue_id": I32,
    "sys_flag": I32,
    "born_timestamp": I64,
    "flag": I32,
    "properties": st.none() | TEXTS,
    "reconsume_times": st.none() | I32,
    "unit_mode": st.booleans(),
    "batch": st.booleans(),
    "max_reconsume_times": st.none() | I32,
    "bname": st.none() | TEXTS,
}
PULLS = st.builds(
    PullHeader,
    consumer_group=TEXTS,
    topic=TEXTS,
    queue_id=I32,
    queue_offset=I64,
    max_msg_nums=I32,
    sys_flag=I32,
    commit_offset=I64,
    suspend_timeout_millis=I64,
    subscription=st.none() | TEXTS,
    sub_version=I64,
    max_msg_bytes=st.none() | I32,
    expression_type=st.none() | TEXTS,
)
ENDS = st.builds(
    EndTransactionHeader,
    producer_group=TEXTS,
    topic=st.none() | TEXTS,
    tran_state_table_offset=I64,
    commit_log_offset=I64,
    commit_or_rollback=I32,
    from_transaction_check=st.booleans(),
    msg_id=st.none() | TEXTS,
    transaction_id=st.none() | TEXTS,
    bname=st.none() | TEXTS,
)
HOT = [
    (RequestCode.SEND_MESSAGE, SendHeader, st.builds(SendHeader, **SEND_FIELDS)),
    (RequestCode.SEND_MESSAGE_V2, SendHeaderV2, st.builds(SendHeaderV2, **SEND_FIELDS)),
    (RequestCode.SEND_BATCH_MESSAGE, SendHeaderV2, st.builds(SendHeaderV2, **SEND_FIELDS)),
    (RequestCode.PULL_MESSAGE, PullHeader, PULLS),
    (RequestCode.LITE_PULL_MESSAGE, PullHeader, PULLS),
    (RequestCode.END_TRANSACTION, EndTransactionHeader, ENDS),
]


@pytest.mark.parametrize(("code", "kind", "values"), HOT)
@pytest.mark.parametrize("encoding", [JSON, BINARY])
@given(data=st.data())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_hot_request_is_read_as_declared(
    code: RequestCode, kind: type, values: st.SearchStrategy, encoding: int, data: st.DataObject
) -> None:
    header = data.draw(values)
    request = Command(
        code, headers.write(header), b"body", opaque=data.draw(I32), flag=2, encoding=encoding
    )
    frame = memoryview(encode(request) + b"body")[4:]
    read = requests.decode(frame)
    assert headers.read(read, kind) == header == headers.read(decode(frame), kind)
    for name in ("code", "opaque", "flag", "version", "language", "encoding", "size"):
        assert getattr(read, name) == getattr(decode(frame), name), name


def test_a_recognised_send_needs_no_second_reading() -> None:
    header = SendHeaderV2(
        producer_group="g", topic="t", queue_id=0, sys_flag=0, born_timestamp=1, flag=0
    )
    frame = memoryview(encode(Command(310, headers.write(header))))[4:]
    assert requests.decode(frame).header == header


@pytest.mark.parametrize(
    "head",
    [
        b'{"code":310,"extFields":{"a":"g"},"opaque":4}',
        b'{"code":310,"extFields":{"a":"g","b":"t","e":"x","f":"0","g":"1","h":"0"},"opaque":4}',
        b'{"code":310,"opaque":4}',
        b'{"code":310,"code":35,"extFields":{},"opaque":4}',
    ],
)
def test_a_hot_request_that_does_not_fit_is_read_plainly(head: bytes) -> None:
    read = requests.decode(memoryview(lead(JSON, head, 0))[4:])
    assert read.header is None
    assert read.opaque == 4


def test_a_hot_request_that_is_no_json_is_refused() -> None:
    with pytest.raises(MalformedFrame):
        requests.decode(memoryview(lead(JSON, b'{"code":310,"extFields":{', 0))[4:])


@given(
    st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**62), st.none() | TEXTS
)
@settings(deadline=None, max_examples=budget("property_examples"))
@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_the_answer_to_a_send_is_as_declared(
    encoding: int, opaque: int, queue_id: int, offset: int, transaction_id: str | None
) -> None:
    frame = answers.sent(
        encoding, opaque, 0, b"7F00", queue_id, offset, transaction_id, b"DefaultRegion"
    )
    read = decode(memoryview(frame)[4:])
    assert headers.read(read, SentHeader) == SentHeader(
        msg_id="7F00",
        queue_id=queue_id,
        queue_offset=offset,
        transaction_id=transaction_id,
        msg_region="DefaultRegion",
        trace_on="true",
    )
    assert (read.opaque, read.flag, read.encoding, read.version) == (opaque, 1, encoding, 513)


@given(st.integers(0, 2**31 - 1), I64, I64, I64, st.binary(max_size=50))
@settings(deadline=None, max_examples=budget("property_examples"))
@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_the_answer_to_a_pull_is_as_declared(
    encoding: int, opaque: int, following: int, low: int, high: int, body: bytes
) -> None:
    buffers = answers.pulled(
        encoding, opaque, 19, b"NO_NEW", following, low, high, [body], len(body)
    )
    frame = b"".join(buffers)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    read = decode(memoryview(frame)[4:])
    assert headers.read(read, PulledHeader) == PulledHeader(
        suggest_which_broker_id=0,
        next_begin_offset=following,
        min_offset=low,
        max_offset=high,
        topic_sys_flag=0,
        group_sys_flag=0,
    )
    assert (read.code, read.remark, read.opaque, read.flag) == (19, "NO_NEW", opaque, 1)
    assert bytes(read.body) == body


@given(
    st.builds(SendHeaderV2, **{**SEND_FIELDS, "properties": TEXTS, "bname": TEXTS}),
    st.sampled_from([RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE]),
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 2]),
)
@settings(max_examples=budget("property_examples"))
def test_the_header_of_a_send_by_hand_is_the_declared_one(
    header: SendHeaderV2, code: RequestCode, opaque: int, flag: int
) -> None:
    head = SendHead(
        code,
        group=header.producer_group,
        topic=header.topic,
        default_topic=header.default_topic,
        default_queue_count=header.default_topic_queue_nums,
        queue_id=header.queue_id,
        broker=header.bname or "",
        is_batch=header.batch,
    )
    written = head.write(
        *(opaque, flag, 7, header.sys_flag, header.born_timestamp, header.flag),
        header.properties or "",
    )
    declared = msgspec.structs.replace(
        header, reconsume_times=0, max_reconsume_times=None, unit_mode=False
    )
    command = Command(code, headers.write(declared), bytes(7), opaque=opaque, flag=flag)
    assert written == encode(command)
