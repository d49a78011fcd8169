"""Field types: their Python type and their wire encoding.

A kind is a plain description. It knows its Python type, its zero value and the shape of its bytes;
it does not read or write them. `reference` turns kinds into constructs and `decoder`/`encoder` turn
them into Python source, so both work from the same description.

Most kinds have two encodings. Up to the version where a message turns flexible, strings are
preceded by an int16 length and bytes and arrays by an int32; from there on all of them by an
unsigned varint of the length plus one, 0 meaning null. Which one applies depends on the message,
not on the kind.
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

from rockgate.protocol.kafka.schema.encoded import Encoded
from rockgate.protocol.kafka.versions import Versions

T = TypeVar("T")

ARRAY_COUNT_MAX = 1_000_000
"""No array may claim more elements, however many bytes follow (Kafka 4.4 has the same limit)."""

STRING_SIZE_MAX = 0x7FFF
"""In bytes of UTF-8: the longest that fits an int16, and the limit of the flexible form too."""

TAG_COUNT_MAX = 10_000
"""No struct may carry more tagged fields, known or not."""

ZERO_UUID = bytes(16)
"""The id that means "no id"."""


class Kind(Generic[T]):
    """A kind of value whose Python type is `T`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Fixed(Kind[T]):
    """A value of constant size, described by its code in the `struct` module."""

    name: str
    code: str
    size: int
    zero: T
    memory: int
    """The most bytes of memory one decoded value takes beyond its pointer."""


@dataclass(frozen=True, slots=True)
class Text(Kind[T]):
    """UTF-8 text."""


@dataclass(frozen=True, slots=True)
class Blob(Kind[T]):
    """Opaque bytes, copied out of the frame."""


@dataclass(frozen=True, slots=True)
class RecordData(Kind[T]):
    """Record batches: a view of the frame, never a copy."""


@dataclass(frozen=True, slots=True)
class Struct(Kind[T]):
    """A value of a declared struct."""

    type: type[T]


@dataclass(frozen=True, slots=True)
class ArrayOf(Kind[T]):
    """A list of one kind; `takes_encoded` lets it hold elements that are encoded already."""

    element: Kind[Any]
    takes_encoded: bool


@dataclass(frozen=True, slots=True)
class OrNull(Kind[T]):
    """A kind that may be null in `versions`; in the others a null is an error."""

    kind: Kind[Any]
    versions: Versions


Bool: Kind[bool] = Fixed("bool", "?", 1, False, 0)
Int8: Kind[int] = Fixed("int8", "b", 1, 0, 28)
Int16: Kind[int] = Fixed("int16", "h", 2, 0, 28)
Uint16: Kind[int] = Fixed("uint16", "H", 2, 0, 28)
Int32: Kind[int] = Fixed("int32", "i", 4, 0, 32)
Int64: Kind[int] = Fixed("int64", "q", 8, 0, 36)
Float64: Kind[float] = Fixed("float64", "d", 8, 0.0, 24)
Uuid: Kind[bytes] = Fixed("uuid", "16s", 16, ZERO_UUID, 49)
String: Kind[str] = Text()
Bytes: Kind[bytes] = Blob()
Records: Kind[bytes | memoryview] = RecordData()


def kind_of(kind: Kind[T] | type[T]) -> Kind[T]:
    """A struct class is accepted as the kind of its own values."""
    return kind if isinstance(kind, Kind) else Struct(kind)


@overload
def Array(element: Kind[T] | type[T]) -> Kind[list[T]]: ...
@overload
def Array(element: Kind[T] | type[T], *, encoded: Literal[True]) -> Kind[list[T | Encoded]]: ...
def Array(element: Kind[T] | type[T], *, encoded: bool = False) -> Kind[Any]:
    """A list of `element`; with `encoded` its items may also be what `encode_part` returned."""
    return ArrayOf(kind_of(element), encoded)


def SlicedArray(element: Kind[T] | type[T]) -> Kind[list[T]]:
    """A list that may be encoded piece by piece; decoded, it is a list of `element`."""
    return ArrayOf(kind_of(element), True)


def Nullable(kind: Kind[T] | type[T], versions: str = "0+") -> Kind[T | None]:
    """The same kind, or None in the versions given."""
    return OrNull(kind_of(kind), Versions.parse(versions))


NullableString = Nullable(String)
NullableBytes = Nullable(Bytes)
NullableRecords = Nullable(Records)
