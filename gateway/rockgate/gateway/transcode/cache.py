"""An LRU cache of transcoded batches by position, bounded in bytes.

Opened batches for RocketMQ's readers, and record batches that were made of messages for Kafka's.
"""

from __future__ import annotations

from collections import OrderedDict

from rockgate.gateway.transcode.messages import Messages


class MessageCache:
    """The batches that readers of the other side are in. Owned by the transcoder."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        # The size is the one that was counted: batches grow while they are read.
        self._kept: OrderedDict[int, tuple[Messages, int]] = OrderedDict()
        self.size = 0
        """Bytes of all of them, about."""
        self.hit_count = 0
        self.miss_count = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, position: int) -> Messages | None:
        """Return an opened batch; None if it is not here, or no longer."""
        found = self._kept.get(position)
        if found is None:
            self.miss_count += 1
            return None
        self.hit_count += 1
        self._kept.move_to_end(position)
        return found[0]

    def put(self, position: int, messages: Messages) -> None:
        """Keep a batch, or count anew what it takes; older ones go to make room.

        The newest stays even if it is larger than the bound: whoever reads it comes back for more.
        """
        known = self._kept.pop(position, None)
        if known is not None:
            self.size -= known[1]
        self._kept[position] = (messages, messages.size)
        self.size += messages.size
        while self.size > self._bytes_max and len(self._kept) > 1:
            _, (_, size) = self._kept.popitem(last=False)
            self.size -= size


class BatchCache:
    """Record batches made of messages, by where the first lies. Owned by the transcoding.

    A small one is not kept: it is what was there when it was made, and soon there is more.
    """

    def __init__(self, bytes_max: int, *, batch_bytes_min: int = 64 << 10) -> None:
        self._bytes_max = bytes_max
        self._batch_bytes_min = batch_bytes_min
        self._kept: OrderedDict[int, tuple[bytearray, int]] = OrderedDict()
        self.size = 0
        """Bytes of all of them."""

    def get(self, position: int) -> tuple[bytearray, int] | None:
        """Return a batch, and the offset behind it."""
        found = self._kept.get(position)
        if found is not None:
            self._kept.move_to_end(position)
        return found

    def put(self, position: int, batch: bytearray, next_offset: int) -> None:
        """Keep a batch; older ones go to make room."""
        if not self._batch_bytes_min <= len(batch) <= self._bytes_max:
            return
        known = self._kept.pop(position, None)
        if known is not None:
            self.size -= len(known[0])
        self._kept[position] = (batch, next_offset)
        self.size += len(batch)
        while self.size > self._bytes_max:
            _, (oldest, _) = self._kept.popitem(last=False)
            self.size -= len(oldest)
