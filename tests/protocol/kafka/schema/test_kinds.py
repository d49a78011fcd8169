import struct

import pytest

from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    String,
    Uint16,
    Uuid,
)
from rockgate.protocol.kafka.schema.kinds import ArrayOf, Fixed, Kind, OrNull


@pytest.mark.parametrize("kind", [Bool, Int8, Int16, Uint16, Int32, Int64, Float64, Uuid])
def test_a_kind_of_constant_size_says_its_size(kind: Kind[object]) -> None:
    assert isinstance(kind, Fixed)
    assert struct.calcsize(f">{kind.code}") == kind.size


@pytest.mark.parametrize("kind", [Int8, Int16, Uint16, Int32, Int64, Float64, Uuid])
def test_a_kind_says_the_most_memory_that_a_value_takes(kind: Kind[object]) -> None:
    assert isinstance(kind, Fixed)
    for data in (b"\xff" * kind.size, b"\x7f" + b"\xff" * (kind.size - 1), b"\x80" * kind.size):
        (value,) = struct.unpack(f">{kind.code}", data)
        assert value.__sizeof__() <= kind.memory


def test_null_is_allowed_in_the_versions_given() -> None:
    kind = Nullable(Array(String), "2+")
    assert isinstance(kind, OrNull)
    assert isinstance(kind.kind, ArrayOf)
    assert str(kind.versions) == "2+"
