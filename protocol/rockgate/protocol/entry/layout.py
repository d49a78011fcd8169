"""The envelope declared in construct: the reference for the hand-written codec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import construct as c

from rockgate.protocol.entry.format import (
    HOST_SIZE_V4,
    HOST_SIZE_V6,
    MAGIC_BATCH,
    MAGIC_V1,
    MAGIC_V2,
)


def _layout(host_born: int, host_store: int, topic_size: c.Construct) -> c.Struct:
    return c.Struct(
        "total_size" / c.Int32ub,
        "magic" / c.Int32ub,
        "body_crc" / c.Int32ub,
        "queue_id" / c.Int32sb,
        "flag" / c.Int32sb,
        "queue_offset" / c.Int64sb,
        "position" / c.Int64sb,
        "sys_flag" / c.Int32sb,
        "born_ms" / c.Int64sb,
        "born_host" / c.Bytes(host_born),
        "store_ms" / c.Int64sb,
        "store_host" / c.Bytes(host_store),
        "reconsume_times" / c.Int32sb,
        "prepared_offset" / c.Int64sb,
        "body" / c.Prefixed(c.Int32ub, c.GreedyBytes),
        "topic" / c.Prefixed(topic_size, c.GreedyBytes),
        "properties" / c.Prefixed(c.Int16sb, c.GreedyBytes),
    )


LAYOUTS: Final[Mapping[tuple[int, bool, bool], c.Struct]] = {
    (magic, born_v6, store_v6): _layout(
        HOST_SIZE_V6 if born_v6 else HOST_SIZE_V4,
        HOST_SIZE_V6 if store_v6 else HOST_SIZE_V4,
        # Java reads these lengths signed, which is where 127 and 32767 come from.
        c.Int8sb if magic == MAGIC_V1 else c.Int16sb,
    )
    for magic in (MAGIC_V1, MAGIC_V2, MAGIC_BATCH)
    for born_v6 in (False, True)
    for store_v6 in (False, True)
}
"""By magic, IPv6 born host, IPv6 store host."""

BLANK_LAYOUT: Final = c.Struct("total_size" / c.Int32ub, "magic" / c.Int32ub)
