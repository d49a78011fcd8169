"""Headers of the name server: routes, brokers, key-value configs."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class RouteHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """105: the route of a topic."""

    topic: str
    accept_standard_json_only: bool = False


class PutKvHeader(msgspec.Struct, frozen=True, kw_only=True):
    """100: store a value."""

    namespace: str
    key: str
    value: str


class KvHeader(msgspec.Struct, frozen=True, kw_only=True):
    """101 and 102: one key."""

    namespace: str
    key: str


class ValueAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A value, if the key has one."""

    value: str | None = None


class NamespaceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """219: all keys of a namespace."""

    namespace: str


class RegisterBrokerHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """103: a broker registers its address and topics; the body may be compressed."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str = ""
    broker_id: Int32
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int64 = 0


class RegisteredAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The address of a slave's master."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnregisterBrokerHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """104: a broker unregisters."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int32


class BrokerNameHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """205 and 327: all topics of one broker."""

    broker_name: str


class WipedAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many topics lost the write permission."""

    wipe_topic_count: Int32


class AddedAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many topics got the write permission back."""

    add_topic_count: Int32


class DeleteTopicHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """216: delete a topic's routes, of one cluster or of all."""

    topic: str
    cluster_name: str | None = None


class ClusterHeader(msgspec.Struct, frozen=True, kw_only=True):
    """224: the topics of a cluster."""

    cluster: str


class DataVersionHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """322: compare the name server's data version of a broker with the broker's own."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int32


class DataVersionAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether it changed."""

    changed: bool


class MemberGroupHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """901: the broker member group of one name: its master and slaves."""

    cluster_name: str
    broker_name: str


class BrokerHeartbeatHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """904: a broker is alive."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int32 | None = None
    epoch: Int64 | None = None
    max_offset: Int64 | None = None
    confirm_offset: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None
