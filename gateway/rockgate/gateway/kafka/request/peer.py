"""Who is calling: a connection's other end, and a request's particulars. Values, no services."""

from collections.abc import Callable

from rockgate.gateway.net.address import Address

ANONYMOUS = "ANONYMOUS"
"""The user of a connection that has not said who it is."""


def do_nothing() -> None:
    """What is done for a peer without a session."""


class Peer:
    """The other end of a connection; made when it is accepted, told more by its first request."""

    __slots__ = (
        "connection_id",
        "local",
        "reading_count",
        "remote",
        "resume",
        "software",
        "software_version",
        "throttle_ms",
        "user",
    )

    def __init__(
        self,
        *,
        connection_id: int,
        local: Address,
        remote: Address,
        resume: Callable[[], None] = do_nothing,
    ) -> None:
        self.connection_id = connection_id
        """Numbers connections since the start; on every log line of this one."""
        self.local = local
        """The address that the connection arrived on."""
        self.remote = remote
        self.software = "unknown"
        """What the client calls itself in ApiVersions, once it has."""
        self.software_version = "unknown"
        self.user = ANONYMOUS
        """Who it is, for quotas."""
        self.throttle_ms = 0
        """How long the session shall read nothing from it, once its next answer has left."""
        self.reading_count = 0
        """Requests of it that a thread reads yet; those behind them are not started meanwhile."""
        self.resume = resume
        """Called when there is one less of these."""

    def let_go(self) -> None:
        """Forget the session, which is over."""
        self.resume = do_nothing

    def __str__(self) -> str:
        return f"connection={self.connection_id} peer={self.remote}"


class Call:
    """What a handler may want to know of a request besides its body."""

    __slots__ = ("client_id", "peer", "version")

    def __init__(self, version: int, client_id: str | None, peer: Peer) -> None:
        self.version = version
        self.client_id = client_id
        self.peer = peer
