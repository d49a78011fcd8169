"""Settings of RocketMQ's listeners: the broker's and the name server's."""

from dataclasses import dataclass, field

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.net.address import Address

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotingConfig:
    """The RocketMQ broker: its listener, its names and its limits."""

    listen: Address = field(default=Address("127.0.0.1", 10911))
    """Address of the RocketMQ broker listener; `off` disables it, port 0 picks a free port."""
    advertise: Address | None = None
    """Address advertised to RocketMQ clients; the bound address by default."""
    broker_name: str = "rockgate"
    """Broker name in routes and message queues; clients store it."""
    cluster_name: str = "DefaultCluster"
    """Name of the cluster this broker belongs to."""
    name_servers: str = ""
    """External name servers to register with, as `host:port;host:port`."""
    hooks: str = ""
    """Names of installed hooks around sends and consumption, separated by commas, in the order of
    their calls."""
    backlog: int = field(default=1_024, metadata={"minimum": 1, "maximum": 65_535})
    """Maximum length of the queue of pending connections."""
    connections_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Maximum number of connections; further ones are closed on accept."""
    idle_ms_max: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Close a connection after this long without traffic or in-flight requests."""
    frame_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Close a connection whose request takes longer than this to arrive."""
    unread_ms_max: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Close a connection that reads none of its pending responses for this long."""
    frame_bytes_max: int = field(default=16 * MIB, metadata={"minimum": KIB, "maximum": 2**31 - 1})
    """Maximum frame size; a larger one closes the connection."""
    in_flight_max: int = field(default=20_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Maximum in-flight requests per connection, suspended pulls included; reading pauses at the
    limit."""
    in_flight_bytes_max: int = field(default=64 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Maximum size of in-flight requests per connection; reading pauses at the limit."""
    total_bytes_max: int = field(default=512 * MIB, metadata={"minimum": MIB, "maximum": 2**50})
    """Maximum size of in-flight requests over all connections; reading pauses at the limit."""
    unread_bytes_max: int = field(default=4 * MIB, metadata={"minimum": KIB, "maximum": 2**40})
    """Maximum size of unread responses per connection before its next requests wait."""
    message_bytes_max: int = field(default=4 * MIB, metadata={"minimum": 1, "maximum": 2**30})
    """Maximum size of a message body or batch; the default is RocketMQ's."""
    pull_messages_max: int = field(default=1_024, metadata={"minimum": 1, "maximum": 100_000})
    """Maximum number of messages per pull, whatever the client requests."""
    pull_bytes_max: int = field(default=8 * MIB, metadata={"minimum": KIB, "maximum": 2**30})
    """Maximum size of the messages per pull, whatever the client requests; at least one is
    returned."""
    suspend_ms_max: int = field(default=60_000, metadata={"minimum": 0, "maximum": 600_000})
    """Maximum time a pull is suspended while no message is available."""
    waiting_pulls_max: int = field(default=10_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Maximum number of suspended pulls per connection; further ones fail with SYSTEM_BUSY."""
    waiting_bytes_max: int = field(default=128 * MIB, metadata={"minimum": MIB, "maximum": 2**40})
    """Maximum memory for suspended pulls over all connections; further ones fail with SYSTEM_BUSY.
    """
    client_expiry_ms: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Remove a client after this long without a heartbeat."""
    lock_expiry_ms: int = field(default=60_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Release a queue lock for orderly consumption after this long without renewal."""
    batch_cache_bytes_max: int = field(
        default=64 * MIB, metadata={"minimum": MIB, "maximum": 2**40}
    )
    """Size of the cache of Kafka record batches decoded for RocketMQ consumers."""
    delay_levels: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    """Delay of each level, starting with level 1."""
    delay_ms_max: int = field(
        default=366 * 86_400_000, metadata={"minimum": 1, "maximum": 366 * 86_400_000}
    )
    """Maximum delay of a message."""
    statistics_labels_max: int = field(default=5_000, metadata={"minimum": 1, "maximum": 1_000_000})
    """Maximum number of topics, and of group and topic pairs, in each set of statistics; each takes
    up to 2 KB."""
    immune_ms: int = field(default=6_000, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """Minimum age of a half message before its producer is checked, unless the message sets one."""
    check_interval_ms: int = field(default=30_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Interval between transaction checks of a half message."""
    check_times_max: int = field(default=15, metadata={"minimum": 1, "maximum": 1_000_000})
    """Maximum number of transaction checks before a half message is discarded for inspection."""
    half_reserved_ms: int = field(default=259_200_000, metadata={"minimum": 1, "maximum": 2**62})
    """Maximum age of a half message that has been checked before it is discarded for inspection."""

    def __post_init__(self) -> None:
        self.name_server_list()
        read_levels(self.delay_levels)
        if self.advertise is not None and (self.advertise.is_closed or self.advertise.port == 0):
            raise ValueError("advertise must be a HOST:PORT that clients can connect to")

    def name_server_list(self) -> list[Address]:
        """The external name servers; ValueError if one is not an address."""
        return [Address.parse(each) for each in self.name_servers.split(";") if each.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesrvConfig:
    """The RocketMQ name server."""

    listen: Address = field(default=Address("127.0.0.1", 9876))
    """Address of the name server listener; `off` disables it, port 0 picks a free port."""
    broker_expiry_ms: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Remove the routes of a broker after this long without a registration."""
    accept_brokers: bool = False
    """Allow brokers on other hosts to register with the name server of `serve`."""
    accept_values: bool = False
    """Allow clients on other hosts to change the key-value configuration of the name server of
    `serve`."""
