"""Bodies about topics and groups in general: settings and lists."""

import msgspec

from rockgate.protocol.remoting.bodies.clients import DataVersion


class TopicConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """351's response: the settings of a topic."""

    topic_name: str
    attributes: dict[str, str] = {}
    order: bool = False
    perm: int = 6
    read_queue_nums: int = 16
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    write_queue_nums: int = 16


class TopicConfigList(msgspec.Struct, kw_only=True, rename="camel"):
    """18: topics to create or update."""

    topic_config_list: list[TopicConfig] = []


class TopicConfigTable(msgspec.Struct, kw_only=True, rename="camel"):
    """All topics of a broker, with the version of that table."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topic_config_table: dict[str, TopicConfig] = {}


class TopicList(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """206's, 224's, 304's and 343's response."""

    topic_list: list[str]
    broker_addr: str | None = None


class GroupList(msgspec.Struct, kw_only=True, rename="camel"):
    """300's response."""

    group_list: list[str] = []


class KeyValues(msgspec.Struct, kw_only=True):
    """28's and 219's response: strings by name."""

    table: dict[str, str] = {}
