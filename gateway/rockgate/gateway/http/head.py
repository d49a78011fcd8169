"""Parser of an HTTP/1.x request head, sans-IO.

It reads what probes and scrapers send and nothing more: no bodies, no continuation lines, no bare
line feeds.
"""

import re
from dataclasses import dataclass
from typing import Final

HEAD_BYTES_MAX: Final = 8192
LINE_BYTES_MAX: Final = 2048
HEADERS_MAX: Final = 64
HEAD_END: Final = b"\r\n\r\n"
METHODS: Final = frozenset({b"GET", b"HEAD"})

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (\S+) HTTP/([0-9])\.([0-9])")
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the path without its query, and whether only the head is wanted."""

    path: str
    is_head: bool
    authorization: bytes | None = None
    """The login that was sent with it."""

    def __repr__(self) -> str:
        """Without the login."""
        return f"Request(path={self.path!r}, is_head={self.is_head})"


class HeadRefused(Exception):
    """A request that is answered with an error status; `reason` is the body of the response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason


class HeadReader:
    """Collects bytes until a request's head is complete, at most HEAD_BYTES_MAX."""

    __slots__ = ("_received",)

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> Request | None:
        """The request, once its head is complete; HeadRefused as soon as it is invalid."""
        searched = max(0, len(self._received) - len(HEAD_END) + 1)
        # One byte more than the limit is enough to reject it.
        self._received += data[: HEAD_BYTES_MAX + 1 - len(self._received)]
        end = self._received.find(HEAD_END, searched)
        if end >= 0:
            return parse(bytes(self._received[:end]))
        if len(self._received) > HEAD_BYTES_MAX:
            raise HeadRefused(431, f"request head exceeds {HEAD_BYTES_MAX:,} bytes")
        if b"\r\n" not in self._received and len(self._received) > LINE_BYTES_MAX:
            raise HeadRefused(414, f"request line exceeds {LINE_BYTES_MAX:,} bytes")
        return None


def parse(head: bytes) -> Request:
    """The request of a complete head, without the empty line at its end."""
    line, *headers = head.split(b"\r\n")
    if len(line) > LINE_BYTES_MAX:
        raise HeadRefused(414, f"request line exceeds {LINE_BYTES_MAX:,} bytes")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise HeadRefused(400, "not an HTTP/1.x request line")
    method, target, major, _ = match.groups()
    if major != b"1":
        raise HeadRefused(505, "only HTTP/1.x is supported")
    if len(headers) > HEADERS_MAX:
        raise HeadRefused(431, f"more than {HEADERS_MAX} headers")
    if not all(_HEADER.fullmatch(header) for header in headers):
        raise HeadRefused(400, "malformed header line")
    if method not in METHODS:
        raise HeadRefused(405, "only GET and HEAD are supported")
    if not target.startswith(b"/"):
        raise HeadRefused(400, "request target is not a path")
    path = target.partition(b"?")[0].decode("ascii", "replace")
    return Request(path=path, is_head=method == b"HEAD", authorization=_authorization(headers))


def _authorization(headers: list[bytes]) -> bytes | None:
    """The login of a request; two of them are refused, for another server may take the other."""
    named = (header.partition(b":") for header in headers)
    found = [value.strip() for name, _, value in named if name.lower() == b"authorization"]
    if len(found) > 1:
        raise HeadRefused(400, "more than one Authorization header")
    return found[0] if found else None
