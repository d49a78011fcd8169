"""Checks that a Kafka server responds and has some topics, before Spark starts.

A session takes ten seconds to start, and a mistyped address or topic is known in one. One request
is all that is needed, Metadata v4, which every server since Kafka 0.11 answers; so it is written
here by hand and needs neither a JVM nor a client library. A server that wants TLS or a login cannot
be asked so: of it only the port is tried, and the admin client asks the rest later.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

from rockgate.pipeline.errors import BadOption, NotReachable, UnknownTopic
from rockgate.pipeline.spark.kafka import Cluster

SECONDS_MAX = 10.0
ANSWER_BYTES_MAX = 64 << 20
PORT_MAX = 65_535
CORRELATION_ID = 1
_METADATA, _VERSION = 3, 4
_UNKNOWN_TOPIC = 3
_PLAIN = "PLAINTEXT"


def check_server(cluster: Cluster, flag: str = "--bootstrap-server") -> None:
    """NotReachable, unless a Kafka server answers at one of the addresses."""
    _asked(cluster, (), flag)


def check_topics(cluster: Cluster, names: Sequence[str], flag: str = "--bootstrap-server") -> None:
    """UnknownTopic names those of the topics that the server does not have."""
    missing = sorted(set(names) - _asked(cluster, sorted(set(names)), flag))
    if missing:
        raise UnknownTopic(
            f"Topic {', '.join(missing)} does not exist at {cluster.bootstrap}. "
            "List topics with `rockgate topics list`."
        )


def _asked(cluster: Cluster, names: Sequence[str], flag: str) -> set[str]:
    """Those of `names` that exist, according to the first address that responds."""
    is_plain = cluster.options.get("security.protocol", _PLAIN).upper() == _PLAIN
    reasons = []
    for host, port in _addresses(cluster.bootstrap, flag):
        try:
            with socket.create_connection((host, port), SECONDS_MAX) as connection:
                return _existing(connection, names) if is_plain else set(names)
        except _NotKafka as error:
            reasons.append(f"{host}:{port} is not a Kafka port: {error}")
        except OSError as error:
            reasons.append(f"Cannot connect to {host}:{port}: {error.strerror or error}")
    raise NotReachable(f"{'; '.join(reasons)}. Is the server running, and is {flag} correct?")


def _addresses(bootstrap: str, flag: str) -> list[tuple[str, int]]:
    found = []
    for each in bootstrap.split(","):
        host, _, port = each.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            raise BadOption(f"Invalid {flag}: expected HOST:PORT, got {each.strip()!r}.")
        found.append((host.strip("[]"), int(port)))
    return found


# One request and its answer


class _NotKafka(Exception):
    """The response is no answer to a Metadata request."""


def _existing(connection: socket.socket, names: Sequence[str]) -> set[str]:
    connection.sendall(_request(names))
    deadline = time.monotonic() + SECONDS_MAX
    (size,) = struct.unpack(">i", _read(connection, 4, deadline))
    if not 4 < size <= ANSWER_BYTES_MAX:
        raise _NotKafka(f"its response would be {size:,} bytes")
    try:
        return _topics(_read(connection, size, deadline))
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise _NotKafka(f"cannot decode its response ({error})") from None


def _request(names: Sequence[str]) -> bytes:
    body = struct.pack(">hhi", _METADATA, _VERSION, CORRELATION_ID) + _text("rockgate-pipeline")
    body += struct.pack(">i", len(names)) + b"".join(_text(name) for name in names)
    # The last byte: a topic that is missing is not to be created.
    return struct.pack(">i", len(body) + 1) + body + b"\0"


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _read(connection: socket.socket, size: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < size:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            data = connection.recv(min(size - len(found), 1 << 16))
        except TimeoutError:
            raise _NotKafka(f"no response within {SECONDS_MAX:.0f} s") from None
        if not data:
            raise _NotKafka("it closed the connection")
        found += data
    return bytes(found)


class _Answer:
    """Reads an answer from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def text(self) -> str:
        size = max(self.number("h"), 0)
        if self._at + size > len(self._data):
            raise IndexError("truncated response")
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def skip(self, count: int) -> None:
        self._at += count


def _topics(data: bytes) -> set[str]:
    """The names of an answer that are topics."""
    answer = _Answer(data)
    if answer.number("i") != CORRELATION_ID:
        raise _NotKafka("unexpected response")
    answer.skip(4)
    for _ in range(answer.number("i")):
        answer.skip(4)
        answer.text()
        answer.skip(4)
        answer.text()
    answer.text()
    answer.skip(4)
    found = set()
    for _ in range(answer.number("i")):
        code = answer.number("h")
        name = answer.text()
        answer.skip(1)
        for _ in range(answer.number("i")):
            answer.skip(2 + 4 + 4)
            for _ in range(2):
                answer.skip(4 * answer.number("i"))
        if code != _UNKNOWN_TOPIC:
            found.add(name)
    return found
