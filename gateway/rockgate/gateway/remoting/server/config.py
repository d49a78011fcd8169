"""Settings of RocketMQ's listeners: the broker's and the name server's.

RocketMQ has one address for each; more of them are ours, in the form of Kafka's `listeners`. What
a listener does differently from the first is said by words after its name: `PUBLIC:enforcing`,
`PUBLIC:enforcing+signature`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import DEFAULT_NAME, Authentication, Endpoint, TlsMode
from rockgate.gateway.net.listening.listener_list import read_listeners, read_map

KIB = 1024
MIB = 1024 * KIB
RequestAuthentication = Literal["none", "signature"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotingConfig:
    """The RocketMQ broker: its listener, its names and its limits."""

    listen: Address = field(default=Address("127.0.0.1", 10911))
    """Address of the RocketMQ broker listener; `off` disables it, port 0 picks a free port."""
    advertise: Address | None = None
    """Address advertised to RocketMQ clients; the bound address by default."""
    tls: TlsMode = "disabled"
    """Whether connections are encrypted; `permissive` accepts both, by the first byte."""
    authentication: RequestAuthentication = "none"
    """How clients authenticate: `signature` is RocketMQ's access key and secret key."""
    listeners: str = ""
    """Further listeners, as `NAME://HOST:PORT` separated by commas; without `remoting.listen`, all
    of them."""
    advertised_listeners: str = ""
    """Addresses advertised to the clients of listeners by name, as `NAME://HOST:PORT` separated by
    commas."""
    listener_security: str = ""
    """What differs between listeners, by name, as `NAME:enforcing+signature` separated by commas.
    """
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
    server_side_reset: bool = True
    """Whether members of a group that is reset learn of it by their next pulls; if not, they are
    sent the new offsets, as RocketMQ 4 does."""
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
        self.endpoints()

    def endpoints(self, given: Collection[str] = ()) -> list[Endpoint]:
        """The listeners, the first one first; ValueError if they contradict each other.

        `given` names the settings that were set explicitly.
        """
        return _endpoints(
            "remoting",
            listen=self.listen,
            is_listen_given="remoting.listen" in given,
            tls=self.tls,
            authentication=self.authentication,
            listeners=self.listeners,
            listener_security=self.listener_security,
            advertise=self.advertise,
            advertised_listeners=self.advertised_listeners,
        )

    def name_server_list(self) -> list[Address]:
        """The external name servers; ValueError if one is not an address."""
        return [Address.parse(each) for each in self.name_servers.split(";") if each.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesrvConfig:
    """The RocketMQ name server."""

    listen: Address = field(default=Address("127.0.0.1", 9876))
    """Address of the name server listener; `off` disables it, port 0 picks a free port."""
    tls: TlsMode = "disabled"
    """Whether connections are encrypted; `permissive` accepts both, by the first byte."""
    authentication: RequestAuthentication = "none"
    """How clients authenticate: `signature` is RocketMQ's access key and secret key."""
    listeners: str = ""
    """Further listeners, as `NAME://HOST:PORT` separated by commas; without `namesrv.listen`, all
    of them."""
    listener_security: str = ""
    """What differs between listeners, by name, as `NAME:enforcing+signature` separated by commas.
    """
    broker_expiry_ms: int = field(default=120_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Remove the routes of a broker after this long without a registration."""
    accept_brokers: bool = False
    """Allow brokers on other hosts to register with the name server of `serve`."""
    accept_values: bool = False
    """Allow clients on other hosts to change the key-value configuration and the settings of the
    name server of `serve`."""

    def __post_init__(self) -> None:
        self.endpoints()

    def endpoints(self, given: Collection[str] = ()) -> list[Endpoint]:
        """The listeners, the first one first; ValueError if they contradict each other.

        `given` names the settings that were set explicitly.
        """
        return _endpoints(
            "namesrv",
            listen=self.listen,
            is_listen_given="namesrv.listen" in given,
            tls=self.tls,
            authentication=self.authentication,
            listeners=self.listeners,
            listener_security=self.listener_security,
        )


def _endpoints(
    protocol: str,
    *,
    listen: Address,
    is_listen_given: bool,
    tls: TlsMode,
    authentication: RequestAuthentication,
    listeners: str,
    listener_security: str,
    advertise: Address | None = None,
    advertised_listeners: str = "",
) -> list[Endpoint]:
    """The endpoints in order, or a closed one; ValueError if the settings contradict each other."""
    others = read_listeners(listeners, "listeners")
    if DEFAULT_NAME in others:
        raise ValueError(f"listeners has {DEFAULT_NAME}, which is the name of {protocol}.listen")
    addresses = {} if others and not is_listen_given else {DEFAULT_NAME: listen}
    addresses |= others
    advertised = dict(read_listeners(advertised_listeners, "advertised_listeners"))
    words = read_map(listener_security, "listener_security")
    for setting, names in (("advertised_listeners", advertised), ("listener_security", words)):
        _check_known(setting, names, addresses)
    first = next(iter(addresses))
    if advertise is not None:
        if first in advertised:
            raise ValueError(f"advertised_listeners has {first}, which advertise is for")
        advertised[first] = advertise
    made = []
    for name, address in addresses.items():
        mode, auth = _meaning(words.get(name, ""), tls, authentication)
        made.append(
            Endpoint(
                protocol=protocol,
                name=name,
                address=address,
                advertised=advertised.get(name),
                tls=mode,
                authentication=auth,
                is_first=name == first,
            )
        )
    return made


def _check_known(setting: str, names: Iterable[str], addresses: Iterable[str]) -> None:
    for name in names:
        if name not in addresses:
            raise ValueError(f"{setting} has {name}, which is not a listener")


def _meaning(
    words: str, tls: TlsMode, authentication: Authentication
) -> tuple[TlsMode, Authentication]:
    """What words such as `enforcing+signature` say; what they leave out is as given."""
    for word in words.lower().split("+") if words else ():
        if word in get_args(TlsMode):
            tls = cast(TlsMode, word)
        elif word in get_args(RequestAuthentication):
            authentication = cast(Authentication, word)
        else:
            known = ", ".join((*get_args(TlsMode), *get_args(RequestAuthentication)))
            raise ValueError(f"listener_security must be of {known}, joined by +, not {words!r}")
    return tls, authentication
