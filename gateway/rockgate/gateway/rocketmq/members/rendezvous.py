"""Who leads what: the gateway with the highest hash for a queue.

When a gateway comes or goes, only queues change that it leads. One digest has the weights of
sixteen queues, so that a topic of many partitions is placed in a moment.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Final

from rockgate.gateway.rocketmq.cluster.brokers import QueueName

BLOCK_COUNT: Final = 16
BLOCKS_MAX: Final = 20_000
"""Blocks that are cached; beyond that the cache starts over."""
_WEIGHTS: Final = struct.Struct(">16I")

Block = tuple[int, ...]
"""The leaders of consecutive queues, as indexes of members."""


class Rendezvous:
    """Leaders among some gateways, which are named by their node ids."""

    __slots__ = ("_blocks", "node_ids")

    def __init__(self, node_ids: Sequence[int]) -> None:
        self.node_ids = tuple(node_ids)
        self._blocks: dict[tuple[str, str, int], Block] = {}

    def leader(self, queue: QueueName) -> int | None:
        """The node id of a queue's leader; None if there are no gateways."""
        node_ids = self.node_ids
        if len(node_ids) <= 1:
            return node_ids[0] if node_ids else None
        at, place = divmod(queue.queue_id, BLOCK_COUNT)
        key = (queue.topic, queue.broker, at)
        block = self._blocks.get(key)
        if block is None:
            if len(self._blocks) >= BLOCKS_MAX:
                self._blocks.clear()
            block = self._blocks[key] = self._block(*key)
        return node_ids[block[place]]

    def _block(self, topic: str, broker: str, at: int) -> Block:
        named = f"{topic}\n{broker}\n{at}\n"
        weights = [_weights(f"{named}{node_id}") for node_id in self.node_ids]
        columns = zip(*weights, strict=True)
        return tuple(max(range(len(each)), key=each.__getitem__) for each in columns)


def _weights(text: str) -> tuple[int, ...]:
    return _WEIGHTS.unpack(hashlib.blake2b(text.encode(), digest_size=_WEIGHTS.size).digest())
