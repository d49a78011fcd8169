"""The log lines of a session. Each names its connection; what a peer wrote is bounded.

Marks at debug: `<` came in, `>` goes out, `=` the connection itself.
"""

import logging

from rockgate.gateway.remoting.caller import Peer
from rockgate.protocol.remoting.codes import request_name
from rockgate.protocol.remoting.command import Command

log = logging.getLogger("rockgate.gateway.remoting.session")

_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"CONN", b"PRI ")


def is_debugging() -> bool:
    """Whether the lines below that cost one call per request are wanted."""
    return log.isEnabledFor(logging.DEBUG)


def connected(peer: Peer) -> None:
    """A connection begins."""
    log.debug("= connected %s", peer)


def disconnected(peer: Peer) -> None:
    """A connection is gone."""
    log.debug("= disconnected %s", peer)


def idle(peer: Peer) -> None:
    """A connection is closed because nothing happens on it."""
    log.debug("= closed, idle %s", peer)


def request(command: Command, peer: Peer) -> None:
    """A request came in."""
    log.debug(
        "< %s code=%s opaque=%d size=%d",
        peer,
        request_name(command.code),
        command.opaque,
        command.size,
    )


def answer(command: Command, peer: Peer, size: int) -> None:
    """Its answer is known."""
    log.debug("> %s code=%s opaque=%d size=%d", peer, command.code, command.opaque, size)


def broken(error: Exception, peer: Peer, first_bytes: bytes) -> None:
    """A connection is closed because of what the peer sent; the peer's doing, so only info."""
    log.info("closed, %s %s%s", error, peer, _hint(first_bytes))


def cut_off(reason: str, peer: Peer) -> None:
    """A connection is cut off by one of our bounds."""
    log.warning("closed, %s %s", reason, peer)


def _hint(first_bytes: bytes) -> str:
    """What a stream that is not remoting looks like."""
    if first_bytes[:2] == b"\x16\x03":
        return " hint='looks like TLS, this port is plain'"
    if first_bytes in _HTTP:
        return " hint='looks like HTTP, this is a RocketMQ port'"
    return ""
