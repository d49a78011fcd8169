"""Request and response headers: API key, version, correlation id.

Read by hand, because every request passes here before anything is known of it. The declarations are
the reference; a test holds the two together. Version 0 of the request header served only an API
between brokers and is not declared.
"""

from struct import Struct, error

from rockgate.protocol.kafka.api import (
    APIS,
    ApiKey,
    request_header_version,
    response_header_version,
)
from rockgate.protocol.kafka.errors import MalformedFrame, UnsupportedVersion
from rockgate.protocol.kafka.schema import Int16, Int32, NullableString, field, message
from rockgate.protocol.kafka.schema.reading import skip_tags
from rockgate.protocol.kafka.varint import Buffer

_LEAD = Struct(">hhih")
_CORRELATION = Struct(">i")
_PLAIN_LEAD = Struct(">ii")
_TAGGED_LEAD = Struct(">iiB")
_new = object.__new__
_VERSION_MIN, _VERSION_MAX = -0x8000, 0x7FFF
# What every request and every answer asks, as plain numbers: the first and the last version that
# pass, and the first flexible one; and which answers have tagged fields in their header.
_PASSING = {int(key): (api.advertised.min, api.advertised.max) for key, api in APIS.items()}
_PASSING[int(ApiKey.API_VERSIONS)] = (_VERSION_MIN, _VERSION_MAX)
_FLEXIBLE_MIN = {
    int(key): api.flexible.min if api.flexible else _VERSION_MAX + 1 for key, api in APIS.items()
}
_TAGGED_RESPONSES = frozenset(
    (int(key), version)
    for key, api in APIS.items()
    for version in api.versions
    if response_header_version(key, version)
)


@message(versions="1-2", flexible="2+")
class RequestHeader:
    """What leads a request; `client_id` keeps the older string form in every version."""

    api_key: int = field(Int16)
    api_version: int = field(Int16)
    correlation_id: int = field(Int32)
    client_id: str | None = field(NullableString, flexible=False)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """What leads a response: the number that its request carried."""

    correlation_id: int = field(Int32)


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Read the header of a request frame (without its size): the header and where the body starts.

    An API that does not exist, or a version that is not advertised, is UnsupportedVersion, for its
    body cannot be read. ApiVersions alone passes in any version: the server answers it.
    """
    try:
        key, version, correlation_id, size = _LEAD.unpack_from(frame)
        low, high = _PASSING.get(key, (0, -1))
        if not low <= version <= high:
            raise UnsupportedVersion(key, version)
        at = _LEAD.size
        client_id = None
        if size >= 0:
            at += size
            if at > len(frame):
                raise MalformedFrame(f"client id of {size} bytes exceeds the frame of {len(frame)}")
            client_id = str(frame[_LEAD.size : at], "utf-8")
        elif size != -1:
            raise MalformedFrame(f"client id of {size} bytes")
        if version >= _FLEXIBLE_MIN[key]:
            tag_count = frame[at]
            at += 1
            if tag_count:
                at = skip_tags(frame, at, len(frame), tag_count)
    except (error, IndexError) as ended:
        raise MalformedFrame(f"request header is truncated at {len(frame)} bytes") from ended
    except ValueError as wrong:
        raise MalformedFrame(f"request header: {wrong}") from wrong
    header = _new(RequestHeader)
    header.api_key = key
    header.api_version = version
    header.correlation_id = correlation_id
    header.client_id = client_id
    return header, at


def encode_request_header(header: RequestHeader) -> bytes:
    """The header of a request of a declared API."""
    client_id = b"" if header.client_id is None else header.client_id.encode()
    size = -1 if header.client_id is None else len(client_id)
    lead = _LEAD.pack(header.api_key, header.api_version, header.correlation_id, size)
    version = request_header_version(ApiKey(header.api_key), header.api_version)
    return lead + client_id + (b"\x00" if version == 2 else b"")


def decode_response_header(api_key: int, api_version: int, frame: Buffer) -> tuple[int, int]:
    """Read the header of a response: its correlation id and where the body starts."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        at = _CORRELATION.size
        if response_header_version(ApiKey(api_key), api_version):
            at = skip_tags(frame, at + 1, len(frame), frame[at])
    except (error, IndexError) as ended:
        raise MalformedFrame(f"response header is truncated at {len(frame)} bytes") from ended
    except ValueError as wrong:
        raise MalformedFrame(f"response header: {wrong}") from wrong
    return correlation_id, at


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of a response of a declared API."""
    return encode_response_lead(api_key, api_version, correlation_id, 0)[4:]


def encode_response_lead(
    api_key: int, api_version: int, correlation_id: int, body_size: int
) -> bytes:
    """What stands before the body of a response: the frame's length and the header, in one."""
    if (api_key, api_version) in _TAGGED_RESPONSES:
        return _TAGGED_LEAD.pack(body_size + 5, correlation_id, 0)
    return _PLAIN_LEAD.pack(body_size + 4, correlation_id)
