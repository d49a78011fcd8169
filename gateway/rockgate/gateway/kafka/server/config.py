"""Settings of Kafka's listener."""

from dataclasses import dataclass, field

from rockgate.gateway.net.address import Address

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    """Kafka's listener: where it listens and what one connection, and all of them, may hold."""

    listen: Address = field(default=Address("127.0.0.1", 9092))
    """Address of Kafka's listener; `off` closes it and port 0 takes a free one."""
    advertise: Address | None = None
    """Address that Kafka clients are told to dial; the bound one unless set."""
    backlog: int = field(default=512, metadata={"minimum": 1, "maximum": 65_535})
    """Connections the system may hold before the server has accepted them."""
    connections_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Connections held at a time; one more is closed as it arrives."""
    idle_ms_max: int = field(default=600_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A connection without a byte for this long, and without a request in flight, is closed."""
    frame_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Time for one request to arrive once it has begun; a slower sender is closed."""
    unread_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A client that owes us reading and takes no byte of its answers for this long is closed."""
    frame_bytes_max: int = field(default=100 * MIB, metadata={"minimum": KIB, "maximum": 2**31 - 1})
    """Largest request frame; a client that announces a larger one is closed."""
    in_flight_max: int = field(default=64, metadata={"minimum": 1, "maximum": 100_000})
    """Requests of one connection worked on at a time; reading pauses at this many."""
    in_flight_bytes_max: int = field(default=128 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Request bytes of one connection held at a time; reading pauses at this many."""
    total_bytes_max: int = field(default=512 * MIB, metadata={"minimum": MIB, "maximum": 2**50})
    """Request bytes of all connections held at a time; reading pauses at this many."""
    producer_expiry_ms: int = field(default=86_400_000, metadata={"minimum": 1, "maximum": 2**62})
    """How long an idempotent producer that writes nothing is remembered."""
    producers_max: int = field(default=1_000_000, metadata={"minimum": 1_000, "maximum": 2**31 - 1})
    """Idempotent producers remembered, by partition; beyond it silent ones go sooner."""
    unread_bytes_max: int = field(default=4 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Answer bytes a client may leave unread before its further requests wait."""

    fetch_bytes_max: int = field(default=55 * MIB, metadata={"minimum": KIB, "maximum": 2**31 - 1})
    """Record bytes of one Fetch answer, whatever the client asks for."""
    fetch_sessions_max: int = field(default=1_000, metadata={"minimum": 0, "maximum": 1_000_000})
    """Fetch sessions kept at a time; clients beyond that name all their partitions in each poll."""
    fetch_session_partitions_max: int = field(
        default=200_000, metadata={"minimum": 0, "maximum": 100_000_000}
    )
    """Partitions of all fetch sessions and waiting polls together; each takes about a kilobyte."""

    def __post_init__(self) -> None:
        if self.advertise is not None and (self.advertise.is_closed or self.advertise.port == 0):
            raise ValueError("advertise wants the HOST:PORT that clients shall dial")
