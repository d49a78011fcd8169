"""Settings of RocketMQ's listeners: the broker's and the name server's."""

from dataclasses import dataclass, field

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.net.address import Address

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotingConfig:
    """RocketMQ's broker: where it listens, what it is called, and what clients may hold."""

    listen: Address = field(default=Address("127.0.0.1", 10911))
    """Address of RocketMQ's broker listener; `off` closes it and port 0 takes a free one."""
    advertise: Address | None = None
    """Address that RocketMQ clients are told to dial; the bound one unless set."""
    broker_name: str = "rockgate"
    """Name of this broker in routes and message queues; clients remember it."""
    cluster_name: str = "DefaultCluster"
    """Name of the cluster that this broker belongs to."""
    name_servers: str = ""
    """Other name servers to register with, as `host:port;host:port`; ours always knows us."""
    backlog: int = field(default=1_024, metadata={"minimum": 1, "maximum": 65_535})
    """Connections the system may hold before the server has accepted them."""
    connections_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Connections held at a time; one more is closed as it arrives."""
    idle_ms_max: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A connection without a byte for this long, and without a request in flight, is closed."""
    frame_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Time for one request to arrive once it has begun; a slower sender is closed."""
    unread_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A client that owes us reading and takes no byte of its answers for this long is closed."""
    frame_bytes_max: int = field(default=16 * MIB, metadata={"minimum": KIB, "maximum": 2**31 - 1})
    """Largest frame; a client that announces a larger one is closed."""
    in_flight_max: int = field(default=20_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Requests of one connection that wait at a time, long polls too; then reading pauses."""
    in_flight_bytes_max: int = field(default=64 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Request bytes of one connection held at a time; reading pauses at this many."""
    total_bytes_max: int = field(default=512 * MIB, metadata={"minimum": MIB, "maximum": 2**50})
    """Request bytes of all connections held at a time; reading pauses at this many."""
    unread_bytes_max: int = field(default=4 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Answer bytes a client may leave unread before its further requests wait."""
    message_bytes_max: int = field(default=4 * MIB, metadata={"minimum": 1, "maximum": 2**30})
    """Largest body of one message, or of one batch; RocketMQ's own default."""
    pull_messages_max: int = field(default=1_024, metadata={"minimum": 1, "maximum": 100_000})
    """Messages of one pull's answer, whatever the client asks for."""
    pull_bytes_max: int = field(default=8 * MIB, metadata={"minimum": KIB, "maximum": 2**30})
    """Message bytes of one pull's answer, whatever the client asks for; one message always fits."""
    suspend_ms_max: int = field(default=60_000, metadata={"minimum": 0, "maximum": 600_000})
    """Longest time that a pull waits for messages."""
    waiting_pulls_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Pulls of one connection that wait for messages at a time; one more is refused as busy."""
    waiting_bytes_max: int = field(default=128 * MIB, metadata={"minimum": MIB, "maximum": 2**40})
    """Memory of all pulls that wait for messages; one more is refused as busy."""
    client_expiry_ms: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A client that sends no heartbeat for this long is forgotten."""
    lock_expiry_ms: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A queue that is locked for ordered reading is free again after this long without renewal."""
    mapped_bytes_max: int = field(default=64 * MIB, metadata={"minimum": MIB, "maximum": 2**40})
    """Memory for record batches that were opened for RocketMQ's consumers."""
    delay_levels: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    """Times of the delay levels, from level 1 on."""
    delay_ms_max: int = field(
        default=366 * 86_400_000, metadata={"minimum": 1, "maximum": 366 * 86_400_000}
    )
    """How far ahead the time of a delayed message may be."""
    immune_ms: int = field(default=6_000, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """How old a half message is before its producers are asked about it, unless it says itself."""
    check_interval_ms: int = field(default=30_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Time from one question about a half message to the next."""
    check_times_max: int = field(default=15, metadata={"minimum": 1, "maximum": 1_000_000})
    """Questions about a half message before it is put aside for inspection."""
    half_reserved_ms: int = field(default=259_200_000, metadata={"minimum": 1, "maximum": 2**62})
    """A half message that is older, and was asked about, is put aside for inspection."""

    def __post_init__(self) -> None:
        self.name_server_list()
        read_levels(self.delay_levels)
        if self.advertise is not None and (self.advertise.is_closed or self.advertise.port == 0):
            raise ValueError("advertise wants the HOST:PORT that clients shall dial")

    def name_server_list(self) -> list[Address]:
        """The other name servers; ValueError if one of them is no address."""
        return [Address.parse(each) for each in self.name_servers.split(";") if each.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesrvConfig:
    """RocketMQ's name server."""

    listen: Address = field(default=Address("127.0.0.1", 9876))
    """Address of the name server's listener; `off` closes it and port 0 takes a free one."""
    broker_expiry_ms: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """A broker that does not register again for this long loses its routes."""
    accept_brokers: bool = False
    """Whether brokers on other machines may register with `serve`, and share topics with ours."""
    accept_values: bool = False
    """Whether clients on other machines may change the keys and values of `serve`."""
