"""A remoting command in both header encodings: a request or a response, with its body.

    length 4 | encoding 1, header length 3 | header | body

The header is JSON or RocketMQ's binary encoding; each frame says which, without negotiation. We
read both and answer each request in its own. docs/internals/remoting.md has the layout.

A header's fields are strings by name; `headers` converts them to typed values.
"""

import struct
from typing import Any, Final, TypeAlias

import msgspec

from rockgate.protocol.errors import MalformedFrame
from rockgate.protocol.remoting.codes import (
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    VERSION,
    Language,
    request_name,
)

Buffer: TypeAlias = bytes | bytearray | memoryview
Fields: TypeAlias = dict[str, str]

JSON: Final = 0
BINARY: Final = 1
HEADER_SIZE_MAX: Final = 0xFFFFFF
"""The largest length that fits three bytes."""
HEADER_READ_MAX: Final = 512 * 1024
"""The longest header accepted: twice the largest message properties with every byte escaped."""
FIELDS_MAX: Final = 1_024
"""The most fields of a binary header; no request has more than about eighteen."""
BODY_SIZE_LIMIT: Final = 2**31 - 1 - 4 - HEADER_SIZE_MAX

_PREFIX: Final = struct.Struct(">II")
_MARK: Final = struct.Struct(">I")
# code, language, version, opaque, flag
_FIXED: Final = struct.Struct(">hBhii")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_LANGUAGES: Final = {language.value: language.name for language in Language}
_LANGUAGE_NUMBERS: Final = {language.name: language.value for language in Language}


class Command:
    """A request or a response. A received one is not modified, except by `release`."""

    __slots__ = (
        "body",
        "code",
        "encoding",
        "fields",
        "flag",
        "head",
        "header",
        "language",
        "opaque",
        "remark",
        "size",
        "version",
    )

    def __init__(
        self,
        code: int,
        fields: Fields | None = None,
        body: Buffer = b"",
        *,
        opaque: int = 0,
        flag: int = 0,
        remark: str | None = None,
        encoding: int = JSON,
        version: int = VERSION,
        language: str = "PYTHON",
        header: Any = None,
        head: Buffer | None = None,
        size: int = 0,
    ) -> None:
        self.code = code
        self.fields = {} if fields is None else fields
        self.body = body
        self.opaque = opaque
        self.flag = flag
        self.remark = remark
        self.encoding = encoding
        self.version = version
        self.language = language
        self.header = header
        """The fields with their types, where a hand codec has read them already."""
        self.head = head
        """The bytes of the JSON header, where `fields` were not read; see `all_fields`."""
        self.size = size
        """Bytes of the whole frame: the memory that this command takes."""

    def release(self) -> None:
        """Release the contents once they were read: the response may take long."""
        self.fields = {}
        self.body = b""
        self.header = self.head = None

    def all_fields(self) -> Fields:
        """The fields as strings, also of a frequent request, of which only types were read."""
        if self.head is not None:
            self.fields = decode_json(memoryview(self.head), memoryview(b""), 0).fields
            self.head = None
        return self.fields

    def __repr__(self) -> str:
        kind = "answer" if self.is_answer else request_name(self.code)
        return f"Command({kind}, code {self.code}, opaque {self.opaque}, {len(self.body)} bytes)"

    @property
    def is_answer(self) -> bool:
        """Whether this is a response to a request of ours."""
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """Whether this is one-way: the sender expects no response."""
        return bool(self.flag & ONEWAY_FLAG)


class _Header(msgspec.Struct, rename="camel", gc=False):
    """A received JSON header: every key except the code may be missing."""

    code: int
    ext_fields: dict[str, str] = msgspec.field(default_factory=dict)
    flag: int = 0
    language: str = "JAVA"
    opaque: int = 0
    remark: str | None = None
    version: int = 0


class _Written(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """A JSON header to send: keys in alphabetical order, as Java writes them."""

    code: int
    ext_fields: dict[str, str] | None = None
    flag: int
    language: str
    opaque: int
    remark: str | None = None
    serialize_type: str = msgspec.field(name="serializeTypeCurrentRPC")
    version: int


_decode_json: Final = msgspec.json.Decoder(_Header).decode
_encode_json: Final = msgspec.json.Encoder().encode
_escape: Final = msgspec.json.Encoder().encode


# Reading


def split(frame: memoryview) -> tuple[int, memoryview, memoryview]:
    """Encoding, header and body of a frame; the header's length is checked against the frame's."""
    if len(frame) < _MARK.size:
        raise MalformedFrame(f"Frame of {len(frame)} bytes has no header length.")
    (mark,) = _MARK.unpack_from(frame)
    encoding, end = mark >> 24, 4 + (mark & HEADER_SIZE_MAX)
    if end > len(frame):
        raise MalformedFrame(f"Header of {end - 4:,} bytes exceeds the frame of {len(frame):,}.")
    if end - 4 > HEADER_READ_MAX:
        raise MalformedFrame(f"Header is {end - 4:,} bytes; the maximum is {HEADER_READ_MAX:,}.")
    if encoding > BINARY:
        raise MalformedFrame(f"Unknown header encoding {encoding}.")
    return encoding, frame[4:end], frame[end:]


def decode(frame: memoryview) -> Command:
    """The command in a frame, or MalformedFrame."""
    encoding, head, body = split(frame)
    if encoding == BINARY:
        return _decode_binary(head, body, len(frame))
    return decode_json(head, body, len(frame))


def decode_json(head: memoryview, body: memoryview, size: int) -> Command:
    """The command with this JSON header."""
    try:
        read = _decode_json(head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise MalformedFrame(f"JSON header is invalid: {wrong}.") from None
    _check_numbers(read.code, read.opaque, read.flag)
    return Command(
        read.code,
        read.ext_fields,
        body,
        opaque=read.opaque,
        flag=read.flag,
        remark=read.remark,
        version=read.version,
        language=read.language,
        size=size,
    )


def _check_numbers(code: int, opaque: int, flag: int) -> None:
    for name, value in (("code", code), ("opaque", opaque), ("flag", flag)):
        if not -0x80000000 <= value <= 0x7FFFFFFF:
            raise MalformedFrame(f"JSON header is invalid: {name} {value} is not a 32-bit integer.")


def _decode_binary(head: memoryview, body: memoryview, size: int) -> Command:
    try:
        code, language, version, opaque, flag = _FIXED.unpack_from(head)
        remark, at = _take(head, _FIXED.size, _I32, "remark")
        packed, _ = _take(head, at, _I32, "fields")
        fields = _decode_fields(bytes(packed))
        text = str(remark, "utf-8") if remark else None
    except struct.error:
        raise MalformedFrame(f"Binary header is truncated at {len(head)} bytes.") from None
    except UnicodeDecodeError as wrong:
        raise MalformedFrame(f"Binary header is invalid: {wrong}.") from None
    return Command(
        code,
        fields,
        body,
        opaque=opaque,
        flag=flag,
        remark=text,
        encoding=BINARY,
        version=version,
        language=_LANGUAGES.get(language, "OTHER"),
        size=size,
    )


def _decode_fields(packed: bytes) -> Fields:
    """Name length 2, name, value length 4, value, and so on: a send has thirteen of them."""
    fields: Fields = {}
    at, end, count = 0, len(packed), 0
    number = int.from_bytes
    while at < end:
        value_at = at + 2 + number(packed[at : at + 2], "big")
        start = value_at + 4
        following = start + number(packed[value_at:start], "big")
        if following > end or start > end:
            raise MalformedFrame(
                f"Binary header is invalid: field at byte {at} exceeds its {end} bytes."
            )
        fields[packed[at + 2 : value_at].decode()] = packed[start:following].decode()
        at = following
        count += 1
        if count > FIELDS_MAX:
            raise MalformedFrame(f"Binary header has more than {FIELDS_MAX:,} fields.")
    return fields


def _take(data: memoryview, at: int, length: struct.Struct, what: str) -> tuple[memoryview, int]:
    """The bytes after a length at `at`, and where they end."""
    (size,) = length.unpack_from(data, at)
    start = at + length.size
    if not 0 <= size <= len(data) - start:
        raise MalformedFrame(
            f"Binary header is invalid: {what} of {size} bytes at byte {at} exceeds the "
            f"{len(data) - start} left."
        )
    return data[start : start + size], start + size


# Writing


def encode(command: Command) -> bytes:
    """Everything of a command's frame before the body."""
    return encode_head(command, len(command.body))


def encode_head(command: Command, body_size: int) -> bytes:
    """The same for a body that is sent separately."""
    if command.encoding == BINARY:
        head = _encode_binary(command)
    else:
        head = _encode_json(
            _Written(
                code=command.code,
                ext_fields=command.fields or None,
                flag=command.flag,
                language=command.language,
                opaque=command.opaque,
                remark=command.remark,
                serialize_type="JSON",
                version=command.version,
            )
        )
    return lead(command.encoding, head, body_size)


def lead(encoding: int, head: bytes, body_size: int) -> bytes:
    """A frame up to its body, around a header that is encoded already."""
    size = len(head)
    assert size <= HEADER_SIZE_MAX, f"{size} bytes do not fit a header"
    assert body_size <= BODY_SIZE_LIMIT, f"{body_size} bytes do not fit a frame"
    return _PREFIX.pack(4 + size + body_size, encoding << 24 | size) + head


def escape(text: str) -> bytes:
    """A string as JSON, with quotes, for hand-written headers."""
    return _escape(text)


def _encode_binary(command: Command) -> bytes:
    remark = (command.remark or "").encode()
    fields = b"".join(
        _I16.pack(len(packed := name.encode()))
        + packed
        + _I32.pack(len(value := text.encode()))
        + value
        for name, text in command.fields.items()
    )
    return b"".join(
        (
            _FIXED.pack(
                # This encoding has two bytes for the code: RocketMQ truncates a larger one as well.
                (command.code + 0x8000 & 0xFFFF) - 0x8000,
                _LANGUAGE_NUMBERS.get(command.language, Language.OTHER),
                command.version,
                command.opaque,
                command.flag,
            ),
            _I32.pack(len(remark)),
            remark,
            _I32.pack(len(fields)),
            fields,
        )
    )
