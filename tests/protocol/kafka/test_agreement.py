"""Four codecs agree on every message in every version: ours, construct's, kafka-python's, kio's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.protocol.kafka import kafka_python, kio
from tests.protocol.kafka.values import VERSIONS, values, version_id

from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.kafka.schema.reference import construct_codec, reference_decode

EVERY_VERSION = pytest.mark.parametrize(("message", "version"), VERSIONS, ids=version_id)
EXAMPLES = settings(deadline=None, max_examples=budget("wire_examples"))

LACKED_BY_KAFKA_PYTHON = {
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "ShareFetch",
    "ShareAcknowledge",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
}


@EVERY_VERSION
@EXAMPLES
@given(data=st.data())
def test_construct_and_kafka_python_write_the_same_bytes_and_read_the_same_values(
    message: type[Any], version: int, data: st.DataObject
) -> None:
    value = data.draw(values(message, version))
    body = encode(value, version)
    assert decode(message, version, body) == value
    assert decode(message, version, memoryview(body)) == value

    assert construct_codec(message, version).build(value) == body
    assert reference_decode(message, version, body) == value

    its_type = kafka_python.its_message(message.__name__)
    if its_type is not None:
        its_value = kafka_python.to_its_value(its_type, value, version)
        assert its_value.encode(version=version) == body
        its_value = its_type.decode(body, version=version)
        assert kafka_python.from_its_value(message, its_value, version) == value


def test_kafka_python_has_every_message_but_those_known_to_be_lacking() -> None:
    lacking = {
        message.__name__.removesuffix("Request")
        for message, _ in VERSIONS
        if message.__name__.endswith("Request")
        and kafka_python.its_message(message.__name__) is None
    }
    assert lacking == LACKED_BY_KAFKA_PYTHON


@EVERY_VERSION
@EXAMPLES
@given(data=st.data())
def test_kio_writes_the_same_bytes_and_reads_the_same_values(
    message: type[Any], version: int, data: st.DataObject
) -> None:
    value = data.draw(values(message, version, tame=True))
    body = encode(value, version)
    its_value = kio.read(message, version, body)
    assert kio.from_its_value(message, its_value, version) == value
    assert kio.write(its_value) == body
