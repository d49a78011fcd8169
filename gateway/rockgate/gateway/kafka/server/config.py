"""Settings of Kafka's listener."""

from collections.abc import Collection
from dataclasses import dataclass, field

from rockgate.gateway.kafka.server.listeners import SecurityProtocol, kafka_endpoints
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    """The Kafka listener and its limits per connection and in total."""

    listen: Address = field(default=Address("127.0.0.1", 9092))
    """Address of the Kafka listener; `off` disables it, port 0 picks a free port."""
    advertise: Address | None = None
    """Address advertised to Kafka clients; the bound address by default."""
    security_protocol: SecurityProtocol = "PLAINTEXT"
    """TLS and authentication of `kafka.listen`, whose name this is."""
    listeners: str = ""
    """Further listeners, as `NAME://HOST:PORT` separated by commas; without `kafka.listen`, all of
    them."""
    advertised_listeners: str = ""
    """Addresses advertised to the clients of listeners by name, as `NAME://HOST:PORT` separated by
    commas."""
    listener_security: str = ""
    """Security protocols of listeners by name, as `NAME:SASL_SSL` separated by commas; a listener
    that is called by a protocol's name has that protocol."""
    backlog: int = field(default=512, metadata={"minimum": 1, "maximum": 65_535})
    """Maximum length of the queue of pending connections."""
    connections_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Maximum number of connections; further ones are closed on accept."""
    idle_ms_max: int = field(default=600_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Close a connection after this long without traffic or in-flight requests."""
    frame_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Close a connection whose request takes longer than this to arrive."""
    unread_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Close a connection that reads none of its pending responses for this long."""
    frame_bytes_max: int = field(default=100 * MIB, metadata={"minimum": KIB, "maximum": 2**31 - 1})
    """Maximum request size; a larger one closes the connection."""
    in_flight_max: int = field(default=64, metadata={"minimum": 1, "maximum": 100_000})
    """Maximum in-flight requests per connection; reading pauses at the limit."""
    in_flight_bytes_max: int = field(default=128 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Maximum size of in-flight requests per connection; reading pauses at the limit."""
    total_bytes_max: int = field(default=512 * MIB, metadata={"minimum": MIB, "maximum": 2**50})
    """Maximum size of in-flight requests over all connections; reading pauses at the limit."""
    producer_expiry_ms: int = field(default=86_400_000, metadata={"minimum": 1, "maximum": 2**62})
    """How long the state of an inactive idempotent producer is retained."""
    producers_max: int = field(default=1_000_000, metadata={"minimum": 1_000, "maximum": 2**31 - 1})
    """Maximum number of idempotent producers retained, counted per partition; inactive ones expire
    early at the limit."""
    unread_bytes_max: int = field(default=4 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Maximum size of unread responses per connection before its next requests wait."""

    fetch_bytes_max: int = field(default=55 * MIB, metadata={"minimum": KIB, "maximum": 2**31 - 1})
    """Maximum size of the records in one Fetch response, whatever the client requests."""
    fetch_sessions_max: int = field(default=1_000, metadata={"minimum": 0, "maximum": 1_000_000})
    """Maximum number of cached fetch sessions; other clients send full fetch requests."""
    fetch_session_partitions_max: int = field(
        default=200_000, metadata={"minimum": 0, "maximum": 100_000_000}
    )
    """Maximum number of partitions over all fetch sessions and waiting fetches, about 1 KB each."""

    def __post_init__(self) -> None:
        if self.advertise is not None and (self.advertise.is_closed or self.advertise.port == 0):
            raise ValueError("advertise must be a HOST:PORT that clients can connect to")
        self.endpoints()

    def endpoints(self, given: Collection[str] = ()) -> list[Endpoint]:
        """The listeners, the first one first; ValueError if they contradict each other.

        `given` names the settings that were set explicitly.
        """
        return kafka_endpoints(
            listen=self.listen,
            is_listen_given="kafka.listen" in given,
            security_protocol=self.security_protocol,
            advertise=self.advertise,
            listeners=self.listeners,
            advertised_listeners=self.advertised_listeners,
            listener_security=self.listener_security,
        )
