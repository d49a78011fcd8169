"""Why a peer cannot be reached, in words: connecting failed, or something else listens there."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import Final

FIRST_BYTES: Final = 16
"""How many of the first bytes a peer sends are compared."""

_KNOWN: Final = (
    (b"HTTP/", "an HTTP server answers there"),
    (b"SSH-", "an SSH server answers there"),
    (b"\x15\x03", "it requires TLS"),
    (b"220 ", "a mail or FTP server answers there"),
    (b"-ERR", "a Redis server answers there"),
)


def cannot_connect(host: str, address: str, error: Exception) -> str:
    """The error for a dial that failed."""
    if isinstance(error, socket.gaierror):
        return f"Cannot resolve host {host}: {error.strerror}"
    return f"Cannot connect to {address}: {_reason(error)}"


def _reason(error: Exception) -> str:
    """Why a dial failed. Asyncio's texts name the call that failed; the number says why."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        # Its numbers are not those of the operating system.
        return f"TLS failed: {error.reason or error}"
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        # Several addresses of one name failed, nearly always for the same reason.
        number = int(found[1])
    if number is not None:
        return os.strerror(number).lower()
    return str(error) or type(error).__name__


def not_a_port(peer: str, protocol: str, first: bytes, why: str) -> str:
    """Say that `peer` is no port of a protocol, Kafka or RocketMQ, and what it seems to be.

    `first` is what it sent before anything that could be decoded, `why` what went wrong.
    """
    for start, who in _KNOWN:
        if first.startswith(start):
            return f"{peer} is not a {protocol} port: {who}"
    if first:
        return f"{peer} is not a {protocol} port: {why}"
    return f"{peer} is not a {protocol} port, or it rejects this client: it {why} before responding"
