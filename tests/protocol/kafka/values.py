"""Values of any declared message, generated from its declaration.

Fields that a version lacks have their defaults, so that a value survives encoding and decoding.
"""

from typing import Any

from hypothesis import strategies as st

from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.schema.declare import Field
from rockgate.protocol.kafka.schema.kinds import (
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.schema.layout import resolve

MESSAGES: list[type[Any]] = [
    message for api in APIS.values() for message in (api.request, api.response)
]
VERSIONS: list[tuple[type[Any], int]] = [
    (message, version) for message in MESSAGES for version in declaration_of(message).versions
]


def version_id(value: object) -> str:
    """The name of a parameter in a test's id."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_FIXED: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "uint16": st.integers(0, 0xFFFF),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16) | st.just(bytes(16)),
} | {name: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in _INTEGERS.items()}

# Short ones, and sometimes one whose length needs a varint of two bytes.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.integers(120, 300).map(
    lambda size: "x" * size
)
_BYTES = st.binary(max_size=12) | st.integers(120, 300).map(bytes)


def values(message: type[Any], version: int, *, tame: bool = False) -> st.SearchStrategy[Any]:
    """Any value of `message` that `version` can encode.

    `tame` limits error codes to existing ones and times to a few decades, for codecs that convert
    them to other types.
    """
    specs = [spec for spec in declaration_of(message).fields if version in spec.versions]
    return st.builds(message, **{spec.name: _field(spec, version, tame) for spec in specs})


def _field(spec: Field, version: int, tame: bool) -> st.SearchStrategy[Any]:
    made = _kind(spec.kind, version, tame)
    if tame and isinstance(spec.kind, Fixed):
        if spec.name.endswith("error_code"):
            return st.sampled_from([int(code) for code in ErrorCode])
        if spec.kind.name in ("int32", "int64"):
            return st.integers(0, 0x7FFFFFFF)
    return made if spec.tag is None else st.builds(spec.make_default) | made


def _kind(kind: Kind[Any], version: int, tame: bool) -> st.SearchStrategy[Any]:
    kind, nullable = resolve(kind, version)
    made: st.SearchStrategy[Any]
    match kind:
        case Fixed():
            made = _FIXED[kind.name]
        case Text():
            made = _TEXT
        case Blob() | RecordData():
            made = _BYTES
        case Struct():
            made = values(kind.type, version, tame=tame)
        case ArrayOf():
            element = _kind(kind.element, version, tame)
            made = st.lists(element, max_size=3)
            if isinstance(kind.element, Fixed):
                made |= st.builds(lambda item: [item] * 130, element)
        case _:
            raise TypeError(f"no values of {kind!r}")
    return st.none() | made if nullable else made
