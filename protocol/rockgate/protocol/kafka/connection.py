"""Both ends of a Kafka connection, sans-IO: bytes in, exchanges and bytes out.

    receive_data(data)          the requests that may start now, in order
    room(), filled(count)       the same, for bytes received in place
    respond(exchange, buffers)  the body of a response, as soon as it is known, in any order
    next_exchanges()            the requests that exceeded the limit in flight, or the peer's error
    data_to_send()              the responses that are next in order, for one `writelines`

A broken stream raises ProtocolError only after every request before the break was returned, so the
outcome never depends on how a peer's bytes were split. Nothing here depends on sockets, time or
what a request means; only its header is read.

The header codec is written by hand, because every request passes through it. The declarations are
the reference; a test compares the two. Version 0 of the request header served only an API between
brokers and is not declared.
"""

from collections import deque
from struct import Struct, error
from typing import Final, TypeAlias

from rockgate.protocol.frames import LENGTH, FrameReader, Spares
from rockgate.protocol.kafka.api import (
    APIS,
    ApiKey,
    request_header_version,
    response_header_version,
)
from rockgate.protocol.kafka.errors import MalformedFrame, ProtocolError, UnsupportedVersion
from rockgate.protocol.kafka.schema import Int16, Int32, NullableString, field, message
from rockgate.protocol.kafka.schema.reading import skip_tags

Buffer: TypeAlias = bytes | bytearray | memoryview

# Headers

_LEAD = Struct(">hhih")
_CORRELATION = Struct(">i")
_PLAIN_LEAD = Struct(">ii")
_TAGGED_LEAD = Struct(">iiB")
_new = object.__new__
_VERSION_MIN, _VERSION_MAX = -0x8000, 0x7FFF
# What is looked up for every request and response, as plain numbers: the first and the last version
# accepted, and the first flexible one; and which responses have tagged fields in their header.
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
    """The header of a request; `client_id` has the older string encoding in every version."""

    api_key: int = field(Int16)
    api_version: int = field(Int16)
    correlation_id: int = field(Int32)
    client_id: str | None = field(NullableString, flexible=False)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """The header of a response: the correlation id of its request."""

    correlation_id: int = field(Int32)


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Read the header of a request frame (without its size): the header and where the body starts.

    An API that does not exist, or a version that is not advertised, is UnsupportedVersion, because
    its body cannot be read. Only ApiVersions is accepted in any version: the server answers it.
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
                raise MalformedFrame(
                    f"Client id of {size} bytes exceeds the frame of {len(frame)}."
                )
            client_id = str(frame[_LEAD.size : at], "utf-8")
        elif size != -1:
            raise MalformedFrame(f"Client id has size {size}.")
        if version >= _FLEXIBLE_MIN[key]:
            tag_count = frame[at]
            at += 1
            if tag_count:
                at = skip_tags(frame, at, len(frame), tag_count)
    except (error, IndexError) as ended:
        raise MalformedFrame(f"Request header is truncated at {len(frame)} bytes.") from ended
    except ValueError as wrong:
        raise MalformedFrame(f"Request header is invalid: {wrong}.") from wrong
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
        raise MalformedFrame(f"Response header is truncated at {len(frame)} bytes.") from ended
    except ValueError as wrong:
        raise MalformedFrame(f"Response header is invalid: {wrong}.") from wrong
    return correlation_id, at


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of a response of a declared API."""
    return encode_response_lead(api_key, api_version, correlation_id, 0)[4:]


def encode_response_lead(
    api_key: int, api_version: int, correlation_id: int, body_size: int
) -> bytes:
    """Everything before the body of a response: the frame's length and the header, in one."""
    if (api_key, api_version) in _TAGGED_RESPONSES:
        return _TAGGED_LEAD.pack(body_size + 5, correlation_id, 0)
    return _PLAIN_LEAD.pack(body_size + 4, correlation_id)


# Connections

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Kafka's own default for socket.request.max.bytes."""
IN_FLIGHT_MAX: Final = 64
FRAME_SIZE_LIMIT: Final = 2**31 - 1
"""The largest length that the four bytes before a frame can hold."""
BODY_SIZE_LIMIT: Final = FRAME_SIZE_LIMIT - 5
"""How much of it is left for the body of a response: its header takes four or five bytes."""


class Exchange:
    """One request and, later, its response. Lives from `receive_data` until that is sent."""

    __slots__ = ("_answer", "body", "header", "size")

    def __init__(self, header: RequestHeader, body: memoryview, size: int) -> None:
        self.header = header
        self.body = body
        self.size = size
        """Bytes of the whole frame: the memory that this request takes."""
        self._answer: list[Buffer] | None = None

    def __repr__(self) -> str:
        return f"Exchange({self.header}, {self.size} bytes)"


class ServerConnection:
    """The server's end: at most `in_flight_max` requests are returned and not yet answered."""

    def __init__(
        self,
        *,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        in_flight_max: int = IN_FLIGHT_MAX,
        spares: Spares | None = None,
    ) -> None:
        self.in_flight_max = in_flight_max
        self._reader = FrameReader(frame_bytes_max, spares)
        self._waiting: deque[memoryview] = deque()
        self._in_flight: deque[Exchange] = deque()
        self._error: ProtocolError | None = None

    # Receiving

    def limit_frames(self, frame_bytes_max: int) -> None:
        """Change the maximum size of requests that have not begun to arrive."""
        self._reader.frame_bytes_max = frame_bytes_max

    def receive_data(self, data: Buffer) -> list[Exchange]:
        """The requests that may start now. `data` must not change afterwards.

        After starting them, call `next_exchanges` once more: it returns the requests that `respond`
        made room for, or raises the error in the bytes after them.
        """
        if self._error is None:
            self._waiting.extend(self._reader.feed(data))
        return self.next_exchanges()

    def room(self) -> memoryview | None:
        """The buffer for the next bytes of a large request; None to pass them to `receive_data`."""
        return None if self._error is not None else self._reader.room()

    def filled(self, count: int) -> list[Exchange]:
        """As `receive_data`, for bytes received into the buffer of `room`."""
        self._waiting.extend(self._reader.filled(count))
        return self.next_exchanges()

    def next_exchanges(self) -> list[Exchange]:
        """Requests received and not returned yet, as far as `in_flight_max` allows."""
        exchanges: list[Exchange] = []
        waiting = self._waiting
        while waiting and self._error is None and len(self._in_flight) < self.in_flight_max:
            frame = waiting.popleft()
            try:
                header, body_start = decode_request_header(frame)
            except ProtocolError as broken:
                waiting.clear()
                self._error = broken
                break
            exchange = Exchange(header, frame[body_start:], len(frame))
            self._in_flight.append(exchange)
            exchanges.append(exchange)
        if not exchanges and not waiting:
            error = self._error or self._reader.error
            if error is not None:
                raise error
        return exchanges

    @property
    def is_full(self) -> bool:
        """Whether reading should stop until responses are sent."""
        return len(self._in_flight) >= self.in_flight_max

    @property
    def in_flight_count(self) -> int:
        """Requests returned whose responses are not sent yet."""
        return len(self._in_flight)

    def forget(self) -> None:
        """Release everything received: the connection is closed."""
        self._reader.forget()
        self._waiting.clear()
        self._in_flight.clear()

    # Sending

    def respond(self, exchange: Exchange, buffers: list[Buffer]) -> None:
        """Set the response of an exchange: the body's buffers, sent without joining them.

        An empty list means that the request gets no response at all (Produce with acks=0).
        """
        assert exchange._answer is None, f"{exchange} was answered already"
        if buffers:
            header = exchange.header
            size = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
            assert size <= BODY_SIZE_LIMIT, f"{size} bytes do not fit a frame"
            lead = encode_response_lead(
                header.api_key, header.api_version, header.correlation_id, size
            )
            exchange._answer = [lead, *buffers]
        else:
            exchange._answer = buffers

    def data_to_send(self) -> list[Buffer]:
        """The buffers of all responses that are next in request order; each is returned once."""
        out: list[Buffer] = []
        in_flight = self._in_flight
        while in_flight and (answer := in_flight[0]._answer) is not None:
            out += answer
            in_flight.popleft()
        return out


class Response:
    """The response to one request: the part of the frame after the header."""

    __slots__ = ("api_key", "api_version", "body", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, body: memoryview
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.body = body

    def __repr__(self) -> str:
        return f"Response({self.api_key!r} v{self.api_version}, {len(self.body)} bytes)"


class ClientConnection:
    """The client's end: numbers its requests and accepts responses in the same order only."""

    def __init__(
        self,
        *,
        client_id: str | None = None,
        frame_bytes_max: int = FRAME_SIZE_LIMIT,
        first_id: int = 0,
    ) -> None:
        """`first_id` is the correlation id of the first request."""
        self.client_id = client_id
        self._reader = FrameReader(frame_bytes_max)
        self._expected: deque[RequestHeader] = deque()
        self._out: list[Buffer] = []
        self._next_id = first_id
        self._error: ProtocolError | None = None

    def send(
        self,
        api_key: ApiKey,
        api_version: int,
        buffers: list[Buffer],
        *,
        has_answer: bool = True,
    ) -> int:
        """Queue a request and return its correlation id; Produce with acks=0 has no response."""
        header = RequestHeader(
            api_key=api_key,
            api_version=api_version,
            correlation_id=self._next_id,
            client_id=self.client_id,
        )
        head = encode_request_header(header)
        size = len(head) + sum(map(len, buffers))
        assert size <= FRAME_SIZE_LIMIT, f"{size} bytes do not fit a frame"
        self._out += (LENGTH.pack(size) + head, *buffers)
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        if has_answer:
            self._expected.append(header)
        return header.correlation_id

    def data_to_send(self) -> list[Buffer]:
        """The buffers of all queued requests; each is returned once."""
        out, self._out = self._out, []
        return out

    @property
    def in_flight_count(self) -> int:
        """Requests whose responses have not arrived yet."""
        return len(self._expected)

    def receive_data(self, data: Buffer) -> list[Response]:
        """The responses that `data` completes, in request order.

        Raises when the stream breaks, but responses before the break are returned first: the error
        is then raised by the next call, which may pass no data.
        """
        responses: list[Response] = []
        if self._error is None:
            try:
                for frame in self._reader.feed(data):
                    responses.append(self._match(frame))  # noqa: PERF401  a break keeps these
            except ProtocolError as broken:
                self._error = broken
        if not responses:
            error = self._error or self._reader.error
            if error is not None:
                raise error
        return responses

    def _match(self, frame: memoryview) -> Response:
        if not self._expected:
            raise MalformedFrame(f"Response of {len(frame)} bytes without a request.")
        sent = self._expected.popleft()
        correlation_id, body_start = decode_response_header(sent.api_key, sent.api_version, frame)
        if correlation_id != sent.correlation_id:
            raise MalformedFrame(
                f"Correlation id is {correlation_id}, expected {sent.correlation_id}."
            )
        return Response(sent.api_key, sent.api_version, correlation_id, frame[body_start:])
