"""Readiness checks: asks a peer in its own protocol whether it is serving.

These few bytes are written by hand and independent of rockgate's codecs, so that a peer's readiness
never depends on what is measured. A peer that is unreachable, silent or sends something unexpected
is simply not ready; the caller retries.
"""

import json
import socket
import struct

Address = tuple[str, int]

SECONDS_MAX = 2.0
ANSWER_SIZE_MAX = 1 << 20

# Length 10, ApiVersions (18) v0, correlation id 1, no client id.
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)

BROKER_RUNTIME_INFO = 28
CLUSTER_INFO = 106
_REMOTING_VERSION = 513
_JSON_ENCODING = 0


def answers_api_versions(address: Address) -> bool:
    """Say whether a Kafka broker responds to ApiVersions without an error.

    A broker in KRaft mode does so only once the controller has unfenced it.
    """
    answer = _ask(address, _API_VERSIONS)
    return answer is not None and len(answer) >= 6 and struct.unpack_from(">ih", answer) == (1, 0)


def ask_remoting(address: Address, code: int, *, others: tuple[int, ...] = ()) -> bytes | None:
    """Return the body of the response to a remoting request without fields; None on failure.

    `others` are response codes besides success that are no failure.
    """
    header = json.dumps(
        {
            "code": code,
            "flag": 0,
            "language": "PYTHON",
            "opaque": 1,
            "serializeTypeCurrentRPC": "JSON",
            "version": _REMOTING_VERSION,
        }
    ).encode()
    lead = struct.pack(">ii", 4 + len(header), _JSON_ENCODING << 24 | len(header))
    answer = _ask(address, lead + header)
    if answer is None or len(answer) < 4:
        return None
    (word,) = struct.unpack_from(">I", answer)
    encoding, end = word >> 24, 4 + (word & 0xFFFFFF)
    if encoding != _JSON_ENCODING or end > len(answer):
        return None
    try:
        found = json.loads(answer[4:end])
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("opaque") != 1:
        return None
    return answer[end:] if found.get("code") in (0, *others) else None


def answers_namesrv(address: Address) -> bool:
    """Say whether a RocketMQ name server returns its cluster information."""
    return ask_remoting(address, CLUSTER_INFO) is not None


def answers_broker(address: Address, namesrv: Address) -> bool:
    """Say whether a RocketMQ broker is serving, and registered with its name server."""
    # One that authenticates its clients does not serve this one: 5.x says 16, 4.9 says 1.
    if ask_remoting(address, BROKER_RUNTIME_INFO, others=(1, 16)) is None:
        return False
    cluster = ask_remoting(namesrv, CLUSTER_INFO)
    host, port = address
    return cluster is not None and f'"{host}:{port}"'.encode() in cluster


def _ask(address: Address, request: bytes) -> bytes | None:
    """Send one frame and read one: both protocols prefix a frame with a length of four bytes."""
    try:
        with socket.create_connection(address, timeout=SECONDS_MAX) as connection:
            connection.sendall(request)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return _read(connection, size) if 0 <= size <= ANSWER_SIZE_MAX else None
    except (OSError, EOFError):
        return None


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
