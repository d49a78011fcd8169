"""One fixed value of any message: every field set, every array with one element, nothing null."""

from collections.abc import Iterator
from typing import Any

from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.schema.kinds import (
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    OrNull,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.schema.layout import element_base

_FIXED = {"bool": True, "float64": 1.5, "uuid": bytes(range(16))}


def sample(message: type[Any], version: int) -> Any:
    """A value with something in every field of the version."""
    specs = [spec for spec in declaration_of(message).fields if version in spec.versions]
    return message(**{spec.name: _sample_kind(spec.kind, version) for spec in specs})


def _sample_kind(kind: Kind[Any], version: int) -> Any:
    match kind:
        case Fixed():
            return _FIXED.get(kind.name, 7)
        case Text():
            return "text"
        case Blob() | RecordData():
            return b"bytes"
        case Struct():
            return sample(kind.type, version)
        case ArrayOf():
            return [_sample_kind(kind.element, version)]
        case OrNull():
            return _sample_kind(kind.kind, version)
    raise TypeError(f"no sample of {kind!r}")


def array_paths(struct: type[Any], version: int) -> Iterator[tuple[str, ...]]:
    """The path of every array in a message, as field names from the top."""
    for spec in declaration_of(struct).fields:
        if version not in spec.versions:
            continue
        kind = spec.kind.kind if isinstance(spec.kind, OrNull) else spec.kind
        if isinstance(kind, ArrayOf):
            yield (spec.name,)
            kind = kind.element
        if isinstance(kind, Struct):
            for inner in array_paths(kind.type, version):
                yield (spec.name, *inner)


def crowded(message: type[Any], version: int, path: tuple[str, ...], memory: int) -> Any:
    """A sample whose array at `path` has the smallest elements, enough of them for `memory`."""
    value = sample(message, version)
    holder = value
    for name in path[:-1]:
        held = getattr(holder, name)
        holder = held[0] if isinstance(held, list) else held
    (kind,) = (spec.kind for spec in declaration_of(type(holder)).fields if spec.name == path[-1])
    array = kind.kind if isinstance(kind, OrNull) else kind
    assert isinstance(array, ArrayOf)
    count = memory // max(64, element_base(array.element, version, flexible=True))
    setattr(holder, path[-1], [_smallest(array.element)] * count)
    return value


def _smallest(kind: Kind[Any]) -> Any:
    match kind:
        case Fixed():
            return kind.zero
        case Text():
            return ""
        case Struct():
            return kind.type()
    raise TypeError(f"no smallest {kind!r}")
