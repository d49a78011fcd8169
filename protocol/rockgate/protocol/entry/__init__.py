"""The log entry's envelope: RocketMQ's message layout, on disk and on RocketMQ's wire alike.

docs/log-format.md is this module's twin. Two kinds share the envelope:

- a *message entry* (MAGIC_V1, or MAGIC_V2 when the topic is over 127 bytes) takes one offset;
- a *batch entry* (MAGIC_BATCH, sysFlag INNER_BATCH) takes `count` offsets. Its first property is
  INNER_NUM in ten digits, so the count is read at a fixed place and no body is ever opened.

The layout is declared once in construct (`layout.LAYOUTS`), which is the reference; `pack_head`,
`pack_tail`, `read` and `check` are the hand codec, and a parity test holds the two together. A
server never loads the reference: construct takes longer to import than all the rest of this.

Every entry ends with the part `__ECRC=`: a CRC-32 over all bytes of the entry but the body
and the digits themselves. The body is covered by bodyCRC, which the checksum covers in turn, so
any flipped byte is seen with one pass over the body. RocketMQ's decoders pass over it, for it has
no name and value.

This is a leaf: it knows neither Kafka nor remoting, and it is all of protocol the store imports.
"""

from rockgate.protocol.entry.batchframe import NO_FRAME, BatchFrame, batch_frame, enclose_batch
from rockgate.protocol.entry.codec import (
    BODY_CRC_AT,
    HEAD_SIZE_V4,
    POSITION_AT,
    SYS_FLAG_AT,
    Entry,
    batch_places,
    batch_properties,
    body_checksum,
    body_of,
    check,
    head_size,
    identify,
    pack_blank,
    pack_head,
    pack_tail,
    peek,
    places,
    read,
    tail_size,
    topic_magic,
    verify,
)
from rockgate.protocol.entry.format import (
    BLANK_SIZE,
    BORN_HOST_V6,
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    COMPRESSED,
    CONTINUES,
    COUNT_MAX,
    DELAYED,
    HOST_SIZE_V4,
    HOST_SIZE_V6,
    INDEXED,
    INNER_BASE,
    INNER_BATCH,
    INNER_NUM,
    MAGIC_BATCH,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MOVED,
    MULTI_TAGS,
    NAME_END,
    PROPERTIES_SIZE_MAX,
    PROPERTY_END,
    STORE_HOST_V6,
    TOPIC_SIZE_MAX,
    TOPIC_SIZE_V1_MAX,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    Buffer,
    EntryError,
)
from rockgate.protocol.entry.messagegroup import Content, envelope_size, pack_messages
from rockgate.protocol.entry.properties import (
    get_property,
    pack_host,
    pack_properties,
    parse_properties,
    properties_of,
    unpack_host,
)

__all__ = [
    "BLANK_SIZE",
    "BODY_CRC_AT",
    "BORN_HOST_V6",
    "CHECKSUM_NAME",
    "CHECKSUM_SIZE",
    "COMPRESSED",
    "CONTINUES",
    "COUNT_MAX",
    "DELAYED",
    "HEAD_SIZE_V4",
    "HOST_SIZE_V4",
    "HOST_SIZE_V6",
    "INDEXED",
    "INNER_BASE",
    "INNER_BATCH",
    "INNER_NUM",
    "MAGIC_BATCH",
    "MAGIC_BLANK",
    "MAGIC_V1",
    "MAGIC_V2",
    "MOVED",
    "MULTI_TAGS",
    "NAME_END",
    "NO_FRAME",
    "POSITION_AT",
    "PROPERTIES_SIZE_MAX",
    "PROPERTY_END",
    "STORE_HOST_V6",
    "SYS_FLAG_AT",
    "TOPIC_SIZE_MAX",
    "TOPIC_SIZE_V1_MAX",
    "TRANSACTION_COMMIT",
    "TRANSACTION_PREPARED",
    "TRANSACTION_ROLLBACK",
    "BatchFrame",
    "Buffer",
    "Content",
    "Entry",
    "EntryError",
    "batch_frame",
    "batch_places",
    "batch_properties",
    "body_checksum",
    "body_of",
    "check",
    "enclose_batch",
    "envelope_size",
    "get_property",
    "head_size",
    "identify",
    "pack_blank",
    "pack_head",
    "pack_host",
    "pack_messages",
    "pack_properties",
    "pack_tail",
    "parse_properties",
    "peek",
    "places",
    "properties_of",
    "read",
    "tail_size",
    "topic_magic",
    "unpack_host",
    "verify",
]
