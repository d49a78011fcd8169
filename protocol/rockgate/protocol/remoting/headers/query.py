"""Headers of message queries: by key (12), by position (33), by offset (321)."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class QueryMessageHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """12: messages of a topic with a key, or with a unique id, stored in a range of time."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    index_type: str | None = None
    last_key: str | None = None
    unique_key_query: bool = msgspec.field(default=False, name="_UNIQUE_KEY_QUERY")


class QueriedHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the index is built."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class ViewMessageHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """33: the message at a position in the commit log."""

    topic: str | None = None
    offset: Int64


class QueryQueueHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """321: a queue's index from an offset on, and which messages a group would receive."""

    topic: str
    queue_id: Int32
    index: Int64
    count: Int32
    consumer_group: str | None = None
