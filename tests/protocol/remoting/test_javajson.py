import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import (
    DataVersion,
    HeartbeatBody,
    SubscriptionGroupConfig,
)
from rockgate.protocol.remoting.bodies.nameserver import (
    BrokerData,
    ClusterInfo,
    RegisterBody,
    RouteData,
)
from rockgate.protocol.remoting.bodies.queues import (
    LockBody,
    MessageQueue,
    OffsetTable,
    TopicStats,
)
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.javajson import (
    DEPTH_MAX,
    LEGALISED_SIZE_MAX,
    Keyed,
    decode,
    encode,
    legalise,
)

QUEUES = st.builds(
    MessageQueue,
    broker_name=st.text(max_size=8),
    queue_id=st.integers(0, 2**31 - 1),
    topic=st.text(max_size=8),
)


@given(st.dictionaries(QUEUES, st.integers(-(2**63), 2**63 - 1), max_size=5))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_map_with_objects_as_keys_comes_back(items: dict[MessageQueue, int]) -> None:
    table = OffsetTable(offset_table=Keyed(items))
    assert decode(encode(table), OffsetTable, "222") == table


def test_a_map_with_objects_as_keys_is_written_as_java_writes_it() -> None:
    queue = MessageQueue(broker_name="a", queue_id=0, topic='t"x')
    assert encode(OffsetTable(offset_table=Keyed({queue: 5}))) == (
        b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t\\"x"}:5}}'
    )


@pytest.mark.parametrize("key", [b"0", b'"0"'])
def test_a_bare_number_and_a_quoted_one_are_the_same_key(key: bytes) -> None:
    body = (
        b'{"brokerAddrTable":{"a":{"brokerAddrs":{' + key + b':"h:1"},"brokerName":"a",'
        b'"cluster":"c"}},"clusterAddrTable":{}}'
    )
    found = decode(body, ClusterInfo, "106").broker_addr_table["a"]
    assert found == BrokerData(broker_addrs={0: "h:1"}, broker_name="a", cluster="c")


def test_what_cannot_have_odd_keys_is_not_read_word_by_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(data: bytes) -> bytes:
        raise AssertionError("read word by word")

    monkeypatch.setattr(javajson, "legalise", refuse)
    for kind in (HeartbeatBody, LockBody, SubscriptionGroupConfig, DataVersion, RegisterBody):
        with pytest.raises(MalformedRequest, match="what is invalid: "):
            decode(b'{"clientID":"c",{0:1}}', kind, "what")
    for odd in (OffsetTable, RouteData, ClusterInfo, TopicStats):
        with pytest.raises(AssertionError, match="word by word"):
            decode(b"{0:1}", odd, "what")


def test_what_is_too_large_is_not_read_at_all() -> None:
    with pytest.raises(MalformedRequest, match="body of 21 bytes exceeds the maximum of 20"):
        decode(b'{"clientID":"client"}', HeartbeatBody, "what", size_max=20)
    assert decode(b'{"clientID":"client"}', HeartbeatBody, "what", size_max=21)
    large = b'{"offsetTable":{0:' + b" " * LEGALISED_SIZE_MAX + b"}}"
    with pytest.raises(MalformedRequest, match="what is invalid: "):
        decode(large, OffsetTable, "what")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_legal_json_stays_what_it_is(value: object) -> None:
    encoded = msgspec.json.encode(value)
    assert msgspec.json.decode(legalise(encoded)) == value


def test_space_between_tokens_is_no_matter() -> None:
    assert legalise(b' { 1 : [ 2 , 3 ] , { "a" : 1 } : 4 } ') == b'{"1":[2,3],"{\\"a\\":1}":4}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"}",
        b"{1}",
        b"{1:}",
        b"{1:2,",
        b"[1 2]",
        b'{"a" 1}',
        b'"open',
        b"{1:2}x",
        b"{{1:2}:3",
        b"[" * 100_000,
        b"{{" * 50_000,
        b'{"offsetTable":{1:2}}',
        b'{"offsetTable":[]}',
        b'{"offsetTable":{"x":1}}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_such_body_is_refused_by_name(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"^RESET"):
        decode(body, OffsetTable, "RESET")


def test_nesting_is_bounded() -> None:
    legalise(b"[" * (DEPTH_MAX - 1) + b"]" * (DEPTH_MAX - 1))
    with pytest.raises(ValueError, match="nested deeper"):
        legalise(b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1))
