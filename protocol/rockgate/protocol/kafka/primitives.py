"""Kafka's primitive types as constructs: the reference for the generated codecs.

Written for clarity and strictness, not for speed. Every length is checked against the remaining
bytes before anything is allocated, every varint is bounded, and a null where none is allowed is an
error, so the same bytes are rejected here and by the generated code.
"""

from typing import Any

from construct import (
    Adapter,
    Construct,
    Flag,
    FormatField,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int64sb,
    StreamError,
    ValidationError,
    stream_read,
    stream_write,
)
from construct import Bytes as Raw

from rockgate.protocol.kafka.fields import UVARINT_SIZE_MAX, read_uvarint, uvarint

__all__ = [
    "ArrayCodec",
    "Float64",
    "MaybeStruct",
    "SizedBytes",
    "UVarint",
    "Utf8",
    "fixed",
    "length_codec",
]


def _left(stream: Any) -> int:
    """Bytes up to the end; streams are always in memory."""
    at = stream.tell()
    end = stream.seek(0, 2)
    stream.seek(at)
    return int(end) - int(at)


class UVarintCodec(Construct):  # type: ignore[misc]  # construct has no types
    """An unsigned varint of at most five bytes and 32 bits."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        data = b""
        while len(data) < UVARINT_SIZE_MAX:
            data += stream_read(stream, 1, path)
            if data[-1] < 128:
                break
        try:
            return read_uvarint(data, 0)[0]
        except (ValueError, IndexError) as error:
            raise ValidationError("varint over 5 bytes or 32 bits", path=path) from error

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        data = uvarint(obj)
        stream_write(stream, data, len(data), path)
        return obj


UVarint = UVarintCodec()


class PlusOne(Adapter):  # type: ignore[misc]  # construct has no types
    """A flexible length: the varint is one more than the length, so that 0 can mean null (-1)."""

    def _decode(self, obj: int, context: Any, path: str) -> int:
        return obj - 1

    def _encode(self, obj: int, context: Any, path: str) -> int:
        return obj + 1


CompactLength = PlusOne(UVarint)

Float64 = FormatField(">", "d")

_FIXED = {
    "bool": Flag,
    "int8": Int8sb,
    "int16": Int16sb,
    "uint16": Int16ub,
    "int32": Int32sb,
    "int64": Int64sb,
    "float64": Float64,
    "uuid": Raw(16),
}


def fixed(name: str) -> Construct:
    """The construct of a kind of constant size."""
    return _FIXED[name]


def length_codec(flexible: bool, short: bool = False) -> Construct:
    """How a length or count is written: strings are `short`, bytes and arrays are not."""
    if flexible:
        return CompactLength
    return Int16sb if short else Int32sb


def _take_length(length: Construct, nullable: bool, stream: Any, context: Any, path: str) -> int:
    """A length of zero or more, or -1 for an allowed null."""
    count = int(length._parsereport(stream, context, path))
    if count < -1:
        raise ValidationError(f"negative length {count}", path=path)
    if count == -1 and not nullable:
        raise ValidationError("null is not allowed", path=path)
    return count


class SizedBytes(Construct):  # type: ignore[misc]  # construct has no types
    """Bytes preceded by their length; None for null."""

    def __init__(self, length: Construct, nullable: bool, size_max: int | None = None) -> None:
        super().__init__()
        self.length, self.nullable, self.size_max = length, nullable, size_max

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        size = _take_length(self.length, self.nullable, stream, context, path)
        if size < 0:
            return None
        if self.size_max is not None and size > self.size_max:
            raise ValidationError(
                f"length {size:,} exceeds the maximum of {self.size_max:,}", path=path
            )
        if size > (left := _left(stream)):
            raise StreamError(f"length {size:,} exceeds the {left:,} bytes left", path=path)
        return bytes(stream_read(stream, size, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            if not self.nullable:
                raise ValidationError("null is not allowed", path=path)
            self.length._build(-1, stream, context, path)
            return obj
        data = bytes(obj)
        if self.size_max is not None and len(data) > self.size_max:
            raise ValidationError(
                f"length {len(data):,} exceeds the maximum of {self.size_max:,}", path=path
            )
        self.length._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj


class Utf8(Adapter):  # type: ignore[misc]  # construct has no types
    """Text over sized bytes."""

    def _decode(self, obj: bytes | None, context: Any, path: str) -> str | None:
        try:
            return None if obj is None else obj.decode()
        except UnicodeDecodeError as error:
            raise ValidationError("not UTF-8", path=path) from error

    def _encode(self, obj: str | None, context: Any, path: str) -> bytes | None:
        return None if obj is None else obj.encode()


class ArrayCodec(Construct):  # type: ignore[misc]  # construct has no types
    """A list preceded by its count, which is checked against the bytes left before reading."""

    def __init__(
        self,
        length: Construct,
        element: Construct,
        element_size_min: int,
        nullable: bool,
        count_max: int,
    ) -> None:
        super().__init__()
        self.length, self.element, self.nullable = length, element, nullable
        self.element_size_min, self.count_max = element_size_min, count_max

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any] | None:
        count = _take_length(self.length, self.nullable, stream, context, path)
        if count < 0:
            return None
        if count > self.count_max:
            raise ValidationError(
                f"{count:,} elements exceed the maximum of {self.count_max:,}", path=path
            )
        if count * self.element_size_min > (left := _left(stream)):
            raise ValidationError(f"{count:,} elements cannot fit in {left:,} bytes", path=path)
        return [
            self.element._parsereport(stream, context, f"{path}[{index}]") for index in range(count)
        ]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            if not self.nullable:
                raise ValidationError("null is not allowed", path=path)
            self.length._build(-1, stream, context, path)
            return obj
        self.length._build(len(obj), stream, context, path)
        for item in obj:
            self.element._build(item, stream, context, path)
        return obj


class MaybeStruct(Construct):  # type: ignore[misc]  # construct has no types
    """A struct preceded by one byte: 1 if it follows, -1 for null."""

    def __init__(self, struct: Construct) -> None:
        super().__init__()
        self.struct = struct

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        marker = Int8sb._parsereport(stream, context, path)
        if marker == -1:
            return None
        if marker != 1:
            raise ValidationError(f"struct marker {marker}", path=path)
        return self.struct._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        Int8sb._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj
