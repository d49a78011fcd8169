"""Bodies about clients: heartbeats, connections, group configs."""

from typing import Any

import msgspec


class SubscriptionData(msgspec.Struct, kw_only=True, rename="camel"):
    """What a group reads of one topic."""

    topic: str
    sub_string: str = "*"
    class_filter_mode: bool = False
    code_set: list[int] = []
    expression_type: str = "TAG"
    sub_version: int = 0
    tags_set: list[str] = []


class ConsumerData(msgspec.Struct, kw_only=True, rename="camel"):
    """One group in which a client consumes."""

    group_name: str
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: list[SubscriptionData] = []
    unit_mode: bool = False


class ProducerData(msgspec.Struct, kw_only=True, rename="camel"):
    """One group in which a client produces."""

    group_name: str


class HeartbeatBody(msgspec.Struct, kw_only=True, rename="camel"):
    """34: a heartbeat; with `without_sub` the subscriptions are those of an earlier one."""

    client_id: str = msgspec.field(name="clientID")
    consumer_data_set: list[ConsumerData] = []
    producer_data_set: list[ProducerData] = []
    heartbeat_fingerprint: int = 0
    without_sub: bool = msgspec.field(default=False, name="withoutSub")


class CheckClientBody(msgspec.Struct, kw_only=True, rename="camel"):
    """46: check whether this subscription is valid."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None


class ConsumerIds(msgspec.Struct, kw_only=True, rename="camel"):
    """38's response: the members of a group."""

    consumer_id_list: list[str] = []


class ConnectedClient(msgspec.Struct, kw_only=True, rename="camel"):
    """One connection of a client."""

    client_addr: str
    client_id: str
    language: str = "JAVA"
    version: int = 0


class ConsumerConnections(msgspec.Struct, kw_only=True, rename="camel"):
    """203's response."""

    connection_set: list[ConnectedClient] = []
    consume_from_where: str | None = None
    consume_type: str | None = None
    message_model: str | None = None
    subscription_table: dict[str, SubscriptionData] = {}


class ProducerConnections(msgspec.Struct, kw_only=True, rename="camel"):
    """204's response."""

    connection_set: list[ConnectedClient] = []


class ProducerInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """One of the producers of a group."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str
    version: int
    last_update_timestamp: int


class ProducerTable(msgspec.Struct, kw_only=True, rename="camel"):
    """328's response: producers by group."""

    data: dict[str, list[ProducerInfo]] = {}


class SubscriptionGroupConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """How a group may consume; the defaults are RocketMQ's."""

    group_name: str
    attributes: dict[str, str] = {}
    broker_id: int = 0
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minute: int = 15
    group_retry_policy: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "CUSTOMIZED"}
    )
    group_sys_flag: int = 0
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: int = 16
    retry_queue_nums: int = 1
    which_broker_when_consume_slowly: int = 1


class GroupConfigList(msgspec.Struct, kw_only=True, rename="camel"):
    """225: configs of groups to set."""

    group_config_list: list[SubscriptionGroupConfig] = []


class SubscriptionAnswer(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """345's response; without data the group does not subscribe to the topic."""

    group: str
    topic: str
    subscription_data: SubscriptionData | None = None


class DataVersion(msgspec.Struct, kw_only=True, rename="camel"):
    """How often a table has changed, and when it last did."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


class SubscriptionGroups(msgspec.Struct, kw_only=True, rename="camel"):
    """201's response."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = {}
    forbidden_table: dict[str, dict[str, int]] = {}
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
