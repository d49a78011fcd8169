"""A declaration in one version: its fields, their order and minimum size.

Both codecs are built from layouts, so only this module decides what a version contains.
"""

from dataclasses import dataclass
from typing import Any

from rockgate.protocol.kafka.schema.declare import Declaration, Field, declaration_of
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

_POINTER = 8
LIST = 56
_OBJECT = 32
_STRING = 49
BYTES = 33
VIEW = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of one struct in one version of its message."""

    type: type[Any]
    version: int
    flexible: bool
    present: tuple[Field, ...]
    """Written in this order."""
    tagged: tuple[Field, ...]
    """Written after the others, by ascending tag, each only when it differs from its default."""
    absent: tuple[Field, ...]
    """Read as their defaults."""


def message_layout(declaration: Declaration, version: int) -> Layout:
    """The layout of a whole message; ValueError for a version it does not have."""
    if version not in declaration.versions:
        raise ValueError(f"{declaration.name} has versions {declaration.versions}, not {version}")
    return struct_layout(declaration.type, version, version in declaration.flexible)


def struct_layout(cls: type[Any], version: int, flexible: bool) -> Layout:
    """The layout of a struct within a message of that version."""
    present, tagged, absent = [], [], []
    for spec in declaration_of(cls).fields:
        if version not in spec.versions:
            absent.append(spec)
        elif spec.tag is None:
            present.append(spec)
        else:
            tagged.append(spec)
    if tagged and not flexible:
        raise TypeError(f"{cls.__name__} has tagged fields in version {version}, not flexible")
    tagged.sort(key=lambda spec: spec.tag or 0)
    return Layout(cls, version, flexible, tuple(present), tuple(tagged), tuple(absent))


def resolve(kind: Kind[Any], version: int) -> tuple[Kind[Any], bool]:
    """The kind itself, and whether it may be null in this version."""
    if isinstance(kind, OrNull):
        return kind.kind, version in kind.versions
    return kind, False


def kind_size_min(kind: Kind[Any], version: int, flexible: bool) -> int:
    """The fewest bytes a value of this kind can take."""
    kind, nullable = resolve(kind, version)
    match kind:
        case Fixed():
            return kind.size
        case Text():
            return 1 if flexible else 2
        case Struct():
            return 1 if nullable else layout_size_min(struct_layout(kind.type, version, flexible))
        case _:
            return 1 if flexible else 4


def layout_size_min(layout: Layout) -> int:
    """The fewest bytes a value of this layout can take."""
    fields = sum(
        kind_size_min(spec.kind, layout.version, layout.flexible and spec.flexible)
        for spec in layout.present
    )
    return fields + layout.flexible


def kind_memory(kind: Kind[Any], version: int, flexible: bool) -> int:
    """The memory of a decoded value beyond the pointer to it.

    Memory that grows with the bytes read is not included: an array's elements are charged when
    their count is known, and the contents of strings and bytes take no more than the bytes they
    were read from.
    """
    kind, _ = resolve(kind, version)
    match kind:
        case Fixed():
            return kind.memory
        case Text():
            return _STRING
        case Blob():
            return BYTES
        case RecordData():
            return VIEW
        case ArrayOf():
            return LIST
        case Struct():
            return layout_memory(struct_layout(kind.type, version, flexible))
    raise TypeError(f"no memory known for {kind!r}")


def layout_memory(layout: Layout) -> int:
    """The memory of a decoded struct with its contents, without elements of arrays."""
    total = _OBJECT
    for spec in (*layout.present, *layout.tagged):
        total += _POINTER + kind_memory(spec.kind, layout.version, layout.flexible)
    for spec in layout.absent:
        total += _POINTER + _default_memory(spec)
    return total


def element_memory(element: Kind[Any], version: int, flexible: bool) -> int:
    """The memory that one more element adds to an array."""
    return _POINTER + kind_memory(element, version, flexible)


def layout_base(layout: Layout) -> int:
    """The memory of a decoded struct before anything is read into it: slots and defaults."""
    fields = (*layout.present, *layout.tagged, *layout.absent)
    defaults = sum(_default_memory(spec) for spec in (*layout.tagged, *layout.absent))
    return _OBJECT + _POINTER * len(fields) + defaults


def element_base(element: Kind[Any], version: int, flexible: bool) -> int:
    """The memory that one more element adds to an array before anything is read into it."""
    if isinstance(element, Struct):
        return _POINTER + layout_base(struct_layout(element.type, version, flexible))
    return _POINTER


def _default_memory(spec: Field) -> int:
    if spec.default_type is None:
        return 0
    if spec.default_type is list:
        return LIST
    fields = declaration_of(spec.default_type).fields
    return _OBJECT + sum(_POINTER + _default_memory(inner) for inner in fields)
