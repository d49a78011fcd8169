"""Headers about clients: unregistration, lists, requests forwarded to a client."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32


class UnregisterClientHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """35: a client leaves, as a producer or as a consumer."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ConsumerGroupHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """38, 40 and 203: one group of consumers."""

    consumer_group: str


class ProducerGroupHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """204: one group of producers."""

    producer_group: str


class HeartbeatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a heartbeat."""

    is_support_heart_beat_v2: bool = msgspec.field(default=True, name="IS_SUPPORT_HEART_BEAT_V2")
    is_sub_change: bool = msgspec.field(default=True, name="IS_SUB_CHANGE")


class DeleteGroupHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """207: delete a group's settings, and optionally its offsets."""

    group_name: str
    clean_offset: bool = False


class RunningInfoHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """307: a consumer's running info; the broker forwards the request."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeDirectlyHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """309: have one consumer consume one message directly; the broker forwards it."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
