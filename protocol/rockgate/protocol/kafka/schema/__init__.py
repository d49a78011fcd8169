"""Kafka's messages declared once: the declaration language and the codecs generated from it.

- `kinds`: what a field can hold. `declare`: `@struct`, `@message`, `field`.
- `layout`: a declaration seen in one version.
- `reference`: the codec by construct, slow and simple; only tests import it. `decoder`, `encoder`:
  the generated ones.
- `codec`: `decode` and `encode`, the entry points for all other modules.
"""

from rockgate.protocol.kafka.schema.codec import decode, encode, encode_buffers, encode_part
from rockgate.protocol.kafka.schema.declare import declaration_of, field, message, struct
from rockgate.protocol.kafka.schema.encoded import Encoded, join
from rockgate.protocol.kafka.schema.kinds import (
    ZERO_UUID,
    Array,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    NullableBytes,
    NullableRecords,
    NullableString,
    Records,
    SlicedArray,
    String,
    Uint16,
    Uuid,
)

__all__ = [
    "ZERO_UUID",
    "Array",
    "Bool",
    "Bytes",
    "Encoded",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Nullable",
    "NullableBytes",
    "NullableRecords",
    "NullableString",
    "Records",
    "SlicedArray",
    "String",
    "Uint16",
    "Uuid",
    "declaration_of",
    "decode",
    "encode",
    "encode_buffers",
    "encode_part",
    "field",
    "join",
    "message",
    "struct",
]
