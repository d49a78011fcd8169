"""Headers of topics: create, update, describe, delete."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32


class TopicHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """202, 215, 217, 300 and 351: one topic."""

    topic: str


class CreateTopicHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """17: create or update a topic."""

    topic: str
    default_topic: str = ""
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: Int32 = 0
    order: bool = False
    attributes: str | None = None
    force: bool = False
