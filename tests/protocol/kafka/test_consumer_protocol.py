from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.protocol.kafka import kafka_python
from tests.protocol.kafka.values import values

from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import MalformedMessage

READERS = {
    ConsumerProtocolSubscription: decode_subscription,
    ConsumerProtocolAssignment: decode_assignment,
}


@pytest.mark.parametrize("message", READERS, ids=lambda message: message.__name__)
@pytest.mark.parametrize("version", range(4))
@settings(deadline=None, max_examples=budget("wire_examples"))
@given(data=st.data())
def test_kafka_python_writes_and_reads_the_same(
    message: type[Any], version: int, data: st.DataObject
) -> None:
    value = data.draw(values(message, version))
    body = encode_versioned(value, version)
    assert READERS[message](body) == value
    its_type = kafka_python.its_data(message.__name__)
    assert kafka_python.to_its_value(its_type, value, version).encode(version=version) == body
    assert kafka_python.from_its_value(message, its_type.decode(body), version) == value


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    subscription = ConsumerProtocolSubscription(topics=["a"], rack_id="r1")
    body = b"\0\x09" + encode_versioned(subscription, 3)[2:] + b"more to come"
    assert decode_subscription(body) == subscription


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0", b"\0\0\0\0\0\x05x"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_subscription(data)
