"""Declarations as constructs: the reference for the generated codecs.

Never on the request path. It is meant to be obviously right: one construct per struct and per
field, built from the same layouts as the generated code but independent of it.
"""

from io import BytesIO
from typing import Any

from construct import Construct, ConstructError, ValidationError, stream_read, stream_write

from rockgate.protocol.kafka.errors import MalformedMessage
from rockgate.protocol.kafka.primitives import (
    ArrayCodec,
    MaybeStruct,
    SizedBytes,
    Utf8,
    UVarint,
    fixed,
    length_codec,
)
from rockgate.protocol.kafka.schema.declare import Field, declaration_of
from rockgate.protocol.kafka.schema.kinds import (
    ARRAY_COUNT_MAX,
    STRING_SIZE_MAX,
    TAG_COUNT_MAX,
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.schema.layout import (
    Layout,
    kind_size_min,
    message_layout,
    resolve,
    struct_layout,
)


class StructCodec(Construct):  # type: ignore[misc]  # construct has no types
    """One struct in one version: its fields in order, then its tagged fields."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.fields = [(spec.name, self._codec(spec)) for spec in layout.present]
        self.tagged = {spec.tag: (spec, self._codec(spec)) for spec in layout.tagged}

    def _codec(self, spec: Field) -> Construct:
        return kind_codec(spec.kind, self.layout.version, self.layout.flexible and spec.flexible)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        values = {}
        for name, codec in self.fields:
            values[name] = codec._parsereport(stream, context, f"{path}.{name}")
        if self.layout.flexible:
            self._parse_tags(values, stream, context, path)
        return self.layout.type(**values)

    def _parse_tags(self, values: dict[str, Any], stream: Any, context: Any, path: str) -> None:
        count = UVarint._parsereport(stream, context, path)
        if count > TAG_COUNT_MAX:
            raise ValidationError(f"{count} tagged fields", path=path)
        for _ in range(count):
            tag = UVarint._parsereport(stream, context, path)
            size = UVarint._parsereport(stream, context, path)
            known = self.tagged.get(tag)
            if known is None:
                stream_read(stream, size, path)
                continue
            spec, codec = known
            start = stream.tell()
            values[spec.name] = codec._parsereport(stream, context, f"{path}.{spec.name}")
            if stream.tell() - start != size:
                raise ValidationError(f"tagged field is not {size} bytes", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for name, codec in self.fields:
            codec._build(getattr(obj, name), stream, context, f"{path}.{name}")
        if self.layout.flexible:
            self._build_tags(obj, stream, path)
        return obj

    def _build_tags(self, obj: Any, stream: Any, path: str) -> None:
        written = []
        for tag, (spec, codec) in self.tagged.items():
            value = getattr(obj, spec.name)
            if value != spec.make_default():
                data = codec.build(value)
                written.append(UVarint.build(tag) + UVarint.build(len(data)) + data)
        data = UVarint.build(len(written)) + b"".join(written)
        stream_write(stream, data, len(data), path)


def kind_codec(kind: Kind[Any], version: int, flexible: bool) -> Construct:
    """The construct of any kind, in the older or the flexible encoding."""
    kind, nullable = resolve(kind, version)
    match kind:
        case Fixed():
            return fixed(kind.name)
        case Text():
            return Utf8(SizedBytes(length_codec(flexible, short=True), nullable, STRING_SIZE_MAX))
        case Blob() | RecordData():
            return SizedBytes(length_codec(flexible), nullable)
        case Struct():
            codec = StructCodec(struct_layout(kind.type, version, flexible))
            return MaybeStruct(codec) if nullable else codec
        case ArrayOf():
            return ArrayCodec(
                length_codec(flexible),
                kind_codec(kind.element, version, flexible),
                kind_size_min(kind.element, version, flexible),
                nullable,
                ARRAY_COUNT_MAX,
            )
    raise TypeError(f"no construct for {kind!r}")


_codecs: dict[tuple[type[Any], int], Construct] = {}


def construct_codec(message_type: type[Any], version: int) -> Construct:
    """The construct of a message: `.parse(data)` gives its value, `.build(value)` its bytes."""
    known = _codecs.get((message_type, version))
    if known is None:
        known = StructCodec(message_layout(declaration_of(message_type), version))
        _codecs[message_type, version] = known
    return known


def reference_decode(message_type: type[Any], version: int, data: bytes) -> Any:
    """`decode` by construct: the value, or MalformedMessage."""
    codec = construct_codec(message_type, version)
    name = declaration_of(message_type).name
    try:
        return codec.parse_stream(BytesIO(data))
    except ConstructError as error:
        raise MalformedMessage(name, version, str(error.path), str(error)) from error
