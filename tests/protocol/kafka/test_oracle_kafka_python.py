"""Every message kafka-python has, in every version, both ways: same values, same bytes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.protocol.kafka.kafka_python import from_its_value, its_message, to_its_value
from tests.protocol.kafka.values import VERSIONS, values, version_id

from rockgate.protocol.kafka.schema import encode

SHARED = [(message, version) for message, version in VERSIONS if its_message(message.__name__)]


@pytest.mark.parametrize(("message", "version"), SHARED, ids=version_id)
@settings(deadline=None, max_examples=budget("wire_examples"))
@given(data=st.data())
def test_it_writes_our_bytes_and_reads_our_values(
    message: type[Any], version: int, data: st.DataObject
) -> None:
    value = data.draw(values(message, version))
    its_type = its_message(message.__name__)
    body = encode(value, version)
    assert to_its_value(its_type, value, version).encode(version=version) == body
    assert from_its_value(message, its_type.decode(body, version=version), version) == value
