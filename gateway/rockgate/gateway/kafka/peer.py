"""Who is calling: a connection's other end, and a request's particulars. Values, no services."""

from rockgate.gateway.address import Address


class Peer:
    """The other end of a connection; made when it is accepted, told more by its first request."""

    __slots__ = ("connection_id", "local", "remote", "software", "software_version")

    def __init__(self, *, connection_id: int, local: Address, remote: Address) -> None:
        self.connection_id = connection_id
        """Numbers connections since the start; on every log line of this one."""
        self.local = local
        """The address that the connection arrived on."""
        self.remote = remote
        self.software = "unknown"
        """What the client calls itself in ApiVersions, once it has."""
        self.software_version = "unknown"

    def __str__(self) -> str:
        return f"connection={self.connection_id} peer={self.remote}"


class Call:
    """What a handler may want to know of a request besides its body."""

    __slots__ = ("client_id", "peer", "version")

    def __init__(self, version: int, client_id: str | None, peer: Peer) -> None:
        self.version = version
        self.client_id = client_id
        self.peer = peer
