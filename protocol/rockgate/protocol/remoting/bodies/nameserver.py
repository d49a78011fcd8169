"""Bodies of the name server: routes, cluster info, broker registration."""

import msgspec

from rockgate.protocol.remoting.bodies.topics import TopicConfigTable


class BrokerData(msgspec.Struct, kw_only=True, rename="camel"):
    """The addresses of the brokers with one name; the master has id 0."""

    broker_addrs: dict[int, str]
    broker_name: str
    cluster: str
    enable_acting_master: bool = False


class QueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """How many queues of a topic one broker has, and their permissions."""

    broker_name: str
    perm: int
    read_queue_nums: int
    topic_sys_flag: int = 0
    write_queue_nums: int


class RouteData(msgspec.Struct, kw_only=True, rename="camel"):
    """105's response."""

    broker_datas: list[BrokerData]
    filter_server_table: dict[str, list[str]] = msgspec.field(default_factory=dict)
    queue_datas: list[QueueData]
    order_topic_conf: str | None = None


class ClusterInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """106's response."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}


class RegisterBody(msgspec.Struct, kw_only=True, rename="camel"):
    """103's body: every topic of the broker, or those that changed."""

    topic_config_serialize_wrapper: TopicConfigTable = msgspec.field(
        default_factory=TopicConfigTable
    )
    filter_server_list: list[str] = []


class MemberGroup(msgspec.Struct, kw_only=True, rename="camel"):
    """The brokers of one name."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = {}


class MemberGroupAnswer(msgspec.Struct, kw_only=True, rename="camel"):
    """901's response."""

    broker_member_group: MemberGroup | None = None


class KvFile(msgspec.Struct, kw_only=True, rename="camel"):
    """kvConfig.json in the format of RocketMQ's name server."""

    config_table: dict[str, dict[str, str]] = {}
