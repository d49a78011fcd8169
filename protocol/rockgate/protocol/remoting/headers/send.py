"""Headers of sends: three forms of send, send-back, reply, recall."""

import msgspec

from rockgate.protocol.remoting.headers.kinds import Int32, Int64


class SendHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """10 and 324: a send with its fields' full names, as clients before 3.2 write them."""

    producer_group: str
    topic: str
    default_topic: str = ""
    default_topic_queue_nums: Int32 = 0
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    batch: bool = False
    max_reconsume_times: Int32 | None = None
    bname: str | None = None


class SendHeaderV2(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    rename={
        "producer_group": "a",
        "topic": "b",
        "default_topic": "c",
        "default_topic_queue_nums": "d",
        "queue_id": "e",
        "sys_flag": "f",
        "born_timestamp": "g",
        "flag": "h",
        "properties": "i",
        "reconsume_times": "j",
        "unit_mode": "k",
        "max_reconsume_times": "l",
        "batch": "m",
        "bname": "n",
    },
):
    """310, 320 and 325: the same with one letter for each name."""

    producer_group: str
    topic: str
    default_topic: str = ""
    default_topic_queue_nums: Int32 = 0
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    batch: bool = False
    bname: str | None = None


class SentHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a message is stored; a batch has one id per message, separated by commas."""

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    msg_region: str | None = msgspec.field(default=None, name="MSG_REGION")
    trace_on: str | None = msgspec.field(default=None, name="TRACE_ON")


class SendBackHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """36: a consumer sends a message back to be delivered again later."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    bname: str | None = None


class PushReplyHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """326: a reply forwarded to the client that sent the request; the body is the reply's."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Int64


class RecallHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """370: recall a delayed message."""

    producer_group: str | None = None
    topic: str
    recall_handle: str
    bname: str | None = None


class RecalledHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The id of the message that was recalled."""

    msg_id: str
    msg_region: str | None = msgspec.field(default=None, name="MSG_REGION")
