"""The address that is advertised to clients.

The one in the settings; else the listener's own address; for a wildcard, which cannot be dialled,
the one that this connection arrived on: the client has just proved that it works.
"""

from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.net.address import Address


class Advertised:
    """The advertised address of one listener."""

    __slots__ = ("_fixed",)

    def __init__(self, *, configured: Address | None, bound: Address) -> None:
        self._fixed = configured or (None if bound.is_wildcard else bound)

    def address_for(self, peer: Peer) -> Address:
        """The address for the client of a connection."""
        return self._fixed or peer.local
