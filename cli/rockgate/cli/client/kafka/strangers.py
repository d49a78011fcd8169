"""Who answers at a port where another protocol was expected, told by the first bytes it sends."""

from __future__ import annotations

from typing import Final

FIRST_BYTES: Final = 16
"""As many are looked at."""

_KNOWN: Final = (
    (b"HTTP/", "an HTTP server answers there"),
    (b"SSH-", "an SSH server answers there"),
    (b"\x15\x03", "it requires TLS, which this client does not support"),
    (b"220 ", "a mail or FTP server answers there"),
    (b"-ERR", "a Redis server answers there"),
)


def not_a_port(peer: str, kind: str, first: bytes, why: str) -> str:
    """Say that `peer` is no port of a kind, Kafka's or RocketMQ's, and what it seems to be.

    `first` is what came before anything that could be read, `why` what went wrong.
    """
    for start, who in _KNOWN:
        if first.startswith(start):
            return f"{peer} is not a {kind} port: {who}"
    if first:
        return f"{peer} is not a {kind} port: {why}"
    return f"{peer} is not a {kind} port, or it rejects this client: it {why} before responding"
