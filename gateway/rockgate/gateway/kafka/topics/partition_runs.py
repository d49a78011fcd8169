"""Encoded partitions: with one leader they differ only in their number.

So a topic of a hundred thousand partitions is not encoded but cut out of a run that is made once
for all topics, by copying one encoded partition and writing the numbers into the copies.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from typing import Any

from rockgate.gateway.kafka.topics.catalog import TopicView
from rockgate.gateway.kafka.topics.placement import Placement
from rockgate.protocol.kafka.schema import Encoded, encode_part

_COUNT_MIN = 64
_NUMBER_SIZE = 4


class PartitionRun:
    """The encoded partitions 0, 1, 2, … of one message in one version."""

    def __init__(self, message: type[Any], describe: Callable[[int], Any], version: int) -> None:
        """`describe` makes the struct of a partition by its number."""
        zero = encode_part(message, describe(0), version)
        ones = encode_part(message, describe(-1), version)
        # Every byte of 0 differs from the same byte of -1, which reveals the place of the number.
        places = [at for at, (a, b) in enumerate(zip(zero.data, ones.data, strict=True)) if a != b]
        assert places == list(range(places[0], places[0] + _NUMBER_SIZE)), "one number of 4 bytes"
        self._at = places[0]
        self._struct = zero.struct
        self._version = version
        self._pattern = zero.data
        self._count = 0
        self._run = b""

    def between(self, first: int, end: int) -> Encoded:
        """The partitions from one up to another."""
        if end > self._count:
            self._grow(end)
        size = len(self._pattern)
        return Encoded(
            self._struct, self._version, self._run[first * size : end * size], end - first
        )

    def _grow(self, count: int) -> None:
        count = max(count, 2 * self._count, _COUNT_MIN)
        numbers = array("I", range(count))
        assert numbers.itemsize == _NUMBER_SIZE, "an unsigned int has 4 bytes"
        if sys.byteorder == "little":
            numbers.byteswap()
        digits, size = numbers.tobytes(), len(self._pattern)
        run = bytearray(self._pattern * count)
        for byte in range(_NUMBER_SIZE):
            run[self._at + byte :: size] = digits[byte::_NUMBER_SIZE]
        self._run, self._count = bytes(run), count


class PlacedPartitions:
    """The encoded partitions of topics, each with its leader."""

    def __init__(
        self, message: type[Any], describe: Callable[[int, int, int], Any], placement: Placement
    ) -> None:
        """`describe` makes the struct of a partition by its number, its leader and the epoch."""
        self._message = message
        self._describe = describe
        self._placement = placement
        self._runs: dict[tuple[int, int, int], PartitionRun] = {}

    def between(self, topic: TopicView, first: int, end: int, version: int) -> list[Any]:
        """The partitions of a topic from one up to another."""
        return [
            self._run(version, led.node_id, led.epoch).between(led.first, led.end)
            for led in self._placement.leaders(topic, first, end)
        ]

    def _run(self, version: int, node_id: int, epoch: int) -> PartitionRun:
        run = self._runs.get((version, node_id, epoch))
        if run is None:
            run = self._runs[version, node_id, epoch] = PartitionRun(
                self._message, lambda index: self._describe(index, node_id, epoch), version
            )
        return run
