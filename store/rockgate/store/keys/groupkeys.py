"""Indexes the keys of appended entries: one at a time, or a group of messages together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rockgate.protocol.entry import TRANSACTION_ROLLBACK
from rockgate.store.log.draft import Draft, Written


class Keys(Protocol):
    """The key index, as appending uses it."""

    def put_entry(
        self, topic: bytes, properties: bytes, position: int, store_ms: int, sys_flag: int = 0
    ) -> None:
        """Index an entry's keys."""

    def put_messages(
        self,
        topic: bytes,
        properties: Sequence[bytes],
        positions: Sequence[int],
        store_ms: int,
    ) -> None:
        """Index messages that follow each other in the log."""

    def put_batch(self, topic: bytes, body: memoryview, position: int, store_ms: int) -> None:
        """Index a batch's records by their keys."""


class GroupKeys:
    """Keys of the messages of a group, indexed together while topic and time are the same."""

    def __init__(self, keys: Keys | None) -> None:
        self._keys = keys
        self._shared = (b"", 0)
        """Topic and store time of the collected messages."""
        self._properties: list[bytes] = []
        self._positions: list[int] = []

    def take(self, draft: Draft, written: Written) -> bool:
        """Collect a message; False if the caller must index it, after those collected."""
        if self._keys is None or (not draft.properties and not draft.batch_count):
            return True
        if (
            draft.batch_count
            or draft.sys_flag & TRANSACTION_ROLLBACK == TRANSACTION_ROLLBACK
            or draft.store_ms
        ):
            self.flush()
            return False
        shared = (draft.topic, written.store_ms)
        if shared != self._shared:
            self.flush()
            self._shared = shared
        self._properties.append(draft.properties)
        self._positions.append(written.position)
        return True

    def flush(self) -> None:
        """Index the collected messages."""
        if self._keys is not None and self._properties:
            topic, store_ms = self._shared
            self._keys.put_messages(topic, self._properties, self._positions, store_ms)
            self._properties, self._positions = [], []
