"""The log lines of a connection, for any listener. Data from the peer is quoted and bounded.

Marks at debug: `<` received, `>` sent, `=` connection events.
"""

import logging

_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"CONN", b"PRI ")


class Lines:
    """Logs the connections of one listener; every line names the peer."""

    def __init__(self, log: logging.Logger, port: str) -> None:
        """`port` describes the listener, as a hint for clients of another protocol."""
        self._log = log
        self._port = port

    def is_debugging(self) -> bool:
        """Whether debug lines, which cost one call per request, are enabled."""
        return self._log.isEnabledFor(logging.DEBUG)

    def connected(self, peer: object) -> None:
        """Log a new connection."""
        self._log.debug("= connected %s", peer)

    def disconnected(self, peer: object) -> None:
        """Log the end of a connection."""
        self._log.debug("= disconnected %s", peer)

    def idle(self, peer: object) -> None:
        """Log that an idle connection was closed."""
        self._log.debug("= closed, idle %s", peer)

    def broken(self, error: Exception, peer: object, first_bytes: bytes) -> None:
        """Log that a connection was closed because of what the peer sent;

        at info, as it is the peer's fault.
        """
        self._log.info("closed on error %s reason=%s%s", peer, error, self._hint(first_bytes))

    def cut_off(self, reason: str, peer: object) -> None:
        """Log that a connection was closed because it exceeded a limit."""
        self._log.warning("closed, %s %s", reason, peer)

    def _hint(self, first_bytes: bytes) -> str:
        """A hint when the first bytes belong to another protocol."""
        if first_bytes[:2] == b"\x16\x03":
            return " hint='looks like TLS, but this listener is plaintext'"
        if first_bytes in _HTTP:
            return f" hint='looks like HTTP, but this is {self._port}'"
        return ""
