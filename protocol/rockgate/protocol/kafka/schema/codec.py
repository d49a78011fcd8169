"""Encodes and decodes typed messages: the public interface of the generated codecs.

Codecs are generated from the declarations on first use, one per message and version, and cached.
For any input, `decode` returns a value or raises MalformedMessage; it never takes more memory than
four times the bytes plus a mebibyte unless its caller allows more.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from rockgate.protocol.kafka.errors import MalformedMessage, UnsupportedVersion
from rockgate.protocol.kafka.fields import Buffer
from rockgate.protocol.kafka.schema.declare import declaration_of
from rockgate.protocol.kafka.schema.decoder import make_decoder
from rockgate.protocol.kafka.schema.encoded import Encoded
from rockgate.protocol.kafka.schema.encoder import make_encoder
from rockgate.protocol.kafka.schema.kinds import ArrayOf, Kind, OrNull, RecordData, Struct
from rockgate.protocol.kafka.schema.reading import OutOfRoom
from rockgate.protocol.kafka.schema.source import LineMap

T = TypeVar("T")

MEMORY_FACTOR = 4
MEMORY_SLACK = 1 << 20
_OVERHEAD = 1 << 14
_COPY_SIZE_MAX = 1 << 18
_PIECE_SIZE_MIN = 1 << 14


@dataclass(frozen=True, slots=True)
class _Decoder:
    function: Callable[[Buffer, int, int], tuple[Any, int]]
    lines: LineMap
    has_records: bool


@dataclass(frozen=True, slots=True)
class _Encoder:
    function: Callable[[Any], list[bytes]]
    """Returns the encoded bytes in pieces."""
    lines: LineMap


_decoders: dict[tuple[type[Any], int], _Decoder] = {}
_exact_decoders: dict[tuple[type[Any], int], _Decoder] = {}
_encoders: dict[tuple[type[Any], type[Any], int], _Encoder] = {}


def decode(
    message_type: type[T], version: int, data: Buffer, *, memory_max: int | None = None
) -> T:
    """Read a body: MalformedMessage if it does not fit, UnsupportedVersion if undeclared.

    `memory_max` is the most bytes of memory the value may take, four times the body plus 1 MiB if
    it is not given. Objects take more than their bytes on the wire, so this refuses a body of more
    than some ten thousand topics. A caller with a reason to trust its peer allows more.
    """
    decoder = _decoders.get((message_type, version)) or _new_decoder(message_type, version)
    size = len(data)
    if memory_max is None:
        memory_max = MEMORY_FACTOR * size + MEMORY_SLACK
    # A fixed allowance for the outermost value, an error and temporary objects.
    memory_max -= _OVERHEAD
    # Strings and bytes take their size on the wire.
    room = memory_max - size
    quick = data
    if decoder.has_records:
        quick = memoryview(data).toreadonly()
    elif size <= _COPY_SIZE_MAX:
        # A copy of a small body pays for itself: slices of bytes are cheaper than those of a view.
        quick = bytes(data)
        room -= size
    # Bytes after the message are not an error, as in Kafka: librdkafka 2.16 sends three after a
    # Metadata v13 for all topics, and one after AlterUserScramCredentials.
    try:
        try:
            return cast(T, decoder.function(quick, size, room)[0])
        except OutOfRoom:
            # Rejected by the upper bound of its elements; the exact size may be much less.
            quick = memoryview(data).toreadonly()
            decoder = _exact_decoder(message_type, version)
        return cast(T, decoder.function(quick, size, memory_max)[0])
    except (ValueError, IndexError, struct.error) as error:
        raise _malformed(message_type, version, decoder.lines, error) from error


def encode(value: Any, version: int) -> bytes:
    """The bytes of a message in `version`; ValueError for a value that cannot be written.

    Fields that the version lacks are not written, whatever their value.
    """
    message_type = type(value)
    return b"".join(_encode(message_type, message_type, value, version))


def encode_buffers(value: Any, version: int) -> list[bytes]:
    """The bytes of a message as buffers to be sent one after the other.

    Small pieces are joined; a large one, such as `Encoded` elements, is not copied again.
    """
    message_type = type(value)
    pieces = _encode(message_type, message_type, value, version)
    buffers, at = [], 0
    for index in [index for index, piece in enumerate(pieces) if len(piece) >= _PIECE_SIZE_MIN]:
        if at < index:
            buffers.append(b"".join(pieces[at:index]))
        buffers.append(pieces[index])
        at = index + 1
    if at < len(pieces):
        buffers.append(b"".join(pieces[at:]))
    return buffers


def encode_part(message_type: type[Any], value: Any, version: int) -> Encoded:
    """One struct of a message, encoded for an array that accepts `Encoded` elements."""
    struct_type = type(value)
    data = b"".join(_encode(message_type, struct_type, value, version))
    return Encoded(struct_type, version, data)


def _encode(message_type: type[Any], part: type[Any], value: Any, version: int) -> list[bytes]:
    encoder = _encoders.get((message_type, part, version))
    if encoder is None:
        encoder = _Encoder(*make_encoder(declaration_of(message_type), version, part))
        _encoders[message_type, part, version] = encoder
    try:
        return encoder.function(value)
    except (ValueError, TypeError, AttributeError, struct.error) as error:
        paths, _ = encoder.lines.locate(error)
        where = ", ".join(dict.fromkeys(paths)) or "the top"
        name = declaration_of(message_type).name
        raise ValueError(f"Cannot encode {name} v{version} at {where}: {error}.") from error


def _new_decoder(message_type: type[Any], version: int) -> _Decoder:
    declaration = declaration_of(message_type)
    if version not in declaration.versions:
        raise UnsupportedVersion(-1 if declaration.key is None else declaration.key, version)
    function, lines = make_decoder(declaration, version)
    decoder = _Decoder(function, lines, _has_records(Struct(message_type)))
    _decoders[message_type, version] = decoder
    return decoder


def _exact_decoder(message_type: type[Any], version: int) -> _Decoder:
    known = _exact_decoders.get((message_type, version))
    if known is None:
        made = make_decoder(declaration_of(message_type), version, exact=True)
        known = _Decoder(*made, _has_records(Struct(message_type)))
        _exact_decoders[message_type, version] = known
    return known


def _malformed(
    message_type: type[Any], version: int, lines: LineMap, error: Exception
) -> MalformedMessage:
    """Name the field that failed; of fields read together, the first one that is incomplete."""
    paths, found = lines.locate(error)
    path, reason = (paths[0] if paths else ""), str(error)
    if isinstance(error, struct.error | IndexError):
        size, position = found.get("size", 0), found.get("pos", 0)
        path = paths[min(size - position, len(paths) - 1)] if paths else ""
        reason = f"message is truncated at {size:,} bytes"
    elif isinstance(error, UnicodeDecodeError):
        reason = "not UTF-8"
    return MalformedMessage(declaration_of(message_type).name, version, path, reason)


def _has_records(kind: Kind[Any]) -> bool:
    """Whether the struct can contain record batches, whose slices must not be copies."""
    match kind:
        case RecordData():
            return True
        case OrNull():
            return _has_records(kind.kind)
        case ArrayOf():
            return _has_records(kind.element)
        case Struct():
            return any(_has_records(spec.kind) for spec in declaration_of(kind.type).fields)
    return False
