"""What a handler is: a row of the table and the object behind it, which answers one API's calls.

A row is static: which API, which versions are served, which are advertised, how bodies are read
and written. The object is made once, at start, from exactly the services that it uses.

`row` checks by types that the API's messages are what the handler takes and returns; from then on
a row is one of many, and what it takes and returns is private to it.

A `Call` says who is calling: the connection's other end, and the request's particulars.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

from rockgate.gateway.kafka.authentication.authenticator import Authentication
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.protocol.kafka.api import Api, ApiKey
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import decode as decode_declared
from rockgate.protocol.kafka.schema import encode_buffers
from rockgate.protocol.kafka.schema.codec import MEMORY_SLACK as USUAL_SLACK
from rockgate.protocol.kafka.versions import Versions


def do_nothing() -> None:
    """The resume callback of a peer without a session."""


def never() -> bool:
    """What is known of a peer without a session."""
    return False


class Peer:
    """The peer of a connection; created on accept, completed by its first request."""

    __slots__ = (
        "authentication",
        "connection_id",
        "has_ended",
        "has_left",
        "listener",
        "local",
        "principal",
        "readable",
        "reading_count",
        "remote",
        "resume",
        "software",
        "software_version",
        "throttle_ms",
        "user",
        "writable",
    )

    def __init__(
        self,
        *,
        connection_id: int,
        local: Address,
        remote: Address,
        listener: Endpoint = NOWHERE,
        resume: Callable[[], None] = do_nothing,
        has_left: Callable[[], bool] = never,
    ) -> None:
        self.connection_id = connection_id
        """The number of the connection since the start; part of each of its log lines."""
        self.local = local
        """The address that the connection arrived on."""
        self.remote = remote
        self.listener = listener
        """The listener that accepted the connection: its name, TLS, authentication."""
        self.software = "unknown"
        """The client's name and version from ApiVersions, once it was sent."""
        self.software_version = "unknown"
        self.authentication: Authentication | None = None
        """How far the client has authenticated; None on a listener without SASL."""
        self.principal = ANONYMOUS
        """Whom the client was authenticated as; `become` changes it."""
        self.user = ANONYMOUS.name
        """The name of the principal, for quotas."""
        self.readable: dict[str | bytes, int] = {}
        """Topics it was allowed to fetch from, with the generation of grants that allowed it."""
        self.writable: dict[str | bytes, int] = {}
        """The same for producing."""
        self.throttle_ms = 0
        """How long the session pauses reading, once the next response is written."""
        self.reading_count = 0
        """Requests of it that are still decoded or held; later ones are not started meanwhile."""
        self.resume = resume
        """Called when one of these is done."""
        self.has_left = has_left
        """Whether the client is gone, even if nothing is read from it; its connection is closed."""
        self.has_ended = False
        """Whether its connection has ended."""

    @property
    def advertised(self) -> Address:
        """The address for this client to dial: that of the listener it came to."""
        return self.listener.address_for(self.local)

    def become(self, principal: Principal) -> None:
        """The client has authenticated."""
        self.principal = principal
        self.user = principal.name
        self.readable.clear()
        self.writable.clear()

    def release(self) -> None:
        """Detach from the session, which has ended."""
        self.has_ended = True
        self.resume = do_nothing
        self.has_left = never

    def __str__(self) -> str:
        return f"connection={self.connection_id} peer={self.remote}"


class Call:
    """The properties of a request besides its body."""

    __slots__ = ("client_id", "peer", "version")

    def __init__(self, version: int, client_id: str | None, peer: Peer) -> None:
        self.version = version
        self.client_id = client_id
        self.peer = peer


Buffer: TypeAlias = bytes | bytearray | memoryview
Answer: TypeAlias = list[Buffer]
"""The buffers of a response body; an empty list sends nothing (Produce with acks=0)."""
Decode: TypeAlias = Callable[[memoryview, int], Any]
Encode: TypeAlias = Callable[[Any, int], Answer]

LARGE_SIZE = 32 << 10
"""Request size from which on a thread decodes it: decoding takes about five milliseconds."""
MEMORY_FACTOR = 16
MEMORY_MAX = 64 << 20

Request = TypeVar("Request", contravariant=True)
Response = TypeVar("Response", covariant=True)
Services = TypeVar("Services")
Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


def memory_max(size: int) -> int:
    """The most memory that a request of this size may take once it is decoded.

    A partition of a dozen bytes becomes an object of two hundred, and a request for ten thousand of
    them is ordinary, so this is more than the codec allows by itself. What its texts and blobs take
    comes on top; but beyond a bound, which holds some hundred thousand of anything, a larger
    request may not be one of more things.
    """
    return size + min(MEMORY_FACTOR * size, MEMORY_MAX) + USUAL_SLACK


class Large(Exception):
    """Raised by a `decode`, before any effect, to leave a request to a thread."""


Shortcut: TypeAlias = Callable[[memoryview, int, Peer], Answer | None]
"""Answers a body of a version at once; None, before any effect, takes the ordinary path."""


class Handler(Protocol[Request, Response]):
    """Answers the requests of one API."""

    def handle(self, request: Request, call: Call, /) -> Response | Awaitable[Response]:
        """The response, at once if it can be known at once.

        A handler that must wait returns a future made for this request alone, because the session
        cancels it when the connection is lost. What has an effect happens before it returns, so
        that the requests of a connection take effect in the order they came.
        """
        ...

    def refuse(self, request: Request, code: ErrorCode, /) -> Response:
        """The response with `code` in every error field of this API."""
        ...


AnyHandler: TypeAlias = Handler[Any, Any]
"""A handler among others, in a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[Services]):
    """One line of the table of handlers; `row` fills in what is usual."""

    key: ApiKey
    versions: Versions
    """The versions served; a request of another one closes the connection."""
    advertised: Versions
    """The versions advertised; wider than `versions` only where clients require it."""
    make: Callable[[Services], AnyHandler]
    decode: Decode
    encode: Encode
    answer_unknown_version: Callable[[], Answer] | None
    """The response to a version that is not served, instead of closing the connection."""
    shortcut: Callable[[Any], Shortcut] | None
    """A faster path past decoding and encoding, for the most frequent requests."""
    is_bulk: bool
    """Whether every large request is decoded outside the loop."""
    decode_large: Decode | None = None
    """How a request is decoded outside the loop, if differently."""
    size_max: int | None = None
    """A larger request is rejected without decoding:

    copying a text or blob of it would block the loop.
    """
    too_large: ErrorCode = ErrorCode.INVALID_REQUEST
    """The reason given for it; the handler rejects it without a request."""
    look: Callable[[Any], None] | None = None
    """Called with every response before it is encoded, to count it."""


AnyRow: TypeAlias = Row[Any]
"""A row of whatever table."""


@overload
def row(
    api: Api[Asked, Answered],
    make: Callable[[Services], Handler[Asked, Answered]],
    *,
    versions: str | None = None,
    answer_unknown_version: Callable[[], Answer] | None = None,
    shortcut: Callable[[Any], Shortcut] | None = None,
    is_bulk: bool = True,
    size_max: int | None = None,
    too_large: ErrorCode = ErrorCode.INVALID_REQUEST,
) -> Row[Services]: ...
@overload
def row(
    api: Api[Any, Any],
    make: Callable[[Services], Handler[Asked, Answered]],
    *,
    decode: Callable[[memoryview, int], Asked],
    encode: Callable[[Answered, int], Answer],
    versions: str | None = None,
    answer_unknown_version: Callable[[], Answer] | None = None,
    shortcut: Callable[[Any], Shortcut] | None = None,
    is_bulk: bool = True,
    decode_large: Callable[[memoryview, int], Asked] | None = None,
    size_max: int | None = None,
    too_large: ErrorCode = ErrorCode.INVALID_REQUEST,
) -> Row[Services]: ...
def row(
    api: Api[Any, Any],
    make: Callable[[Services], AnyHandler],
    *,
    versions: str | None = None,
    decode: Decode | None = None,
    encode: Encode | None = None,
    answer_unknown_version: Callable[[], Answer] | None = None,
    shortcut: Callable[[Any], Shortcut] | None = None,
    is_bulk: bool = True,
    decode_large: Decode | None = None,
    size_max: int | None = None,
    too_large: ErrorCode = ErrorCode.INVALID_REQUEST,
) -> Row[Services]:
    """A row that serves what is declared, by the declared codec or by one of the handler's own."""
    key = api.key
    served = api.versions if versions is None else Versions.parse(versions)
    assert served and served & api.versions == served, f"{key.name} {served} is not declared"
    # Versions advertised below the declared range (Produce) stay so when fewer are served.
    low = api.advertised.min if served.min == api.versions.min else served.min
    return Row(
        key=key,
        versions=served,
        advertised=Versions(low, served.max),
        make=make,
        decode=decode
        or (
            lambda body, version: decode_declared(
                api.request, version, body, memory_max=memory_max(len(body))
            )
        ),
        encode=encode or _encode,
        answer_unknown_version=answer_unknown_version,
        shortcut=shortcut,
        is_bulk=is_bulk,
        decode_large=decode_large,
        size_max=size_max,
        too_large=too_large,
    )


def _encode(response: Any, version: int) -> Answer:
    return [*encode_buffers(response, version)]
