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


_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
_EXPIRED: Final = 10
_UNKNOWN_AUTHORITY: Final = frozenset({18, 19, 20, 21})
_OTHER_NAME: Final = frozenset({62, 64})
"""OpenSSL's numbers of why a certificate is not valid."""


def cannot_connect(host: str, address: str, error: Exception) -> str:
    """The error for a dial that failed."""
    if isinstance(error, socket.gaierror):
        return f"Cannot resolve host {host}: {error.strerror}"
    return f"Cannot connect to {address}: {_reason(error)}"


def is_tls_failure(error: Exception) -> bool:
    """Whether the peer was reached, and the TLS handshake with it failed."""
    return isinstance(error, ssl.SSLError | ConnectionResetError)


def _reason(error: Exception) -> str:
    """Why a dial failed. Asyncio's texts name the call that failed; the number says why."""
    if isinstance(error, ssl.SSLCertVerificationError):
        message = error.verify_message.rstrip(".")
        return f"its certificate was refused: {message}. {_certificate_remedy(error.verify_code)}"
    if isinstance(error, ssl.SSLError):
        # Its numbers are not those of the operating system.
        if error.reason in _NO_TLS:
            return "it does not speak TLS there. Use a port with TLS, or connect without"
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, ConnectionResetError):
        # Connecting itself is refused or times out; it was the handshake.
        return "it closed the connection during the TLS handshake, and may not speak TLS"
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        # Several addresses of one name failed, nearly always for the same reason.
        number = int(found[1])
    if number is not None:
        return os.strerror(number).lower()
    return str(error) or type(error).__name__


def _certificate_remedy(code: int) -> str:
    if code == _EXPIRED:
        return "Renew the server's certificate"
    if code in _UNKNOWN_AUTHORITY:
        return "Trust the authority that signed it, if it is the right one"
    if code in _OTHER_NAME:
        return "Connect by a name that the certificate has, or issue one for this name"
    return "Check the server's certificate and the authorities that you trust"


def closed_because(error: Exception | None) -> str:
    """Say that a peer has closed the connection, and why if that is known."""
    if error is None:
        return "closed the connection"
    if isinstance(error, ssl.SSLError):
        return f"closed the connection ({error.reason or error})"
    number = error.errno if isinstance(error, OSError) else None
    return f"closed the connection ({os.strerror(number).lower() if number else error})"


def not_a_port(peer: str, protocol: str, first: bytes, why: str) -> str:
    """Say that `peer` is no port of a protocol, Kafka or RocketMQ, and what it seems to be.

    `first` is what it sent before anything that could be decoded, `why` what went wrong.
    """
    for start, who in _KNOWN:
        if first.startswith(start):
            return f"{peer} is not a {protocol} port: {who}"
    if first:
        return f"{peer} is not a {protocol} port: {why}"
    return (
        f"{peer} is not a {protocol} port, or it requires TLS or rejects this client:"
        f" it {why} before responding"
    )
