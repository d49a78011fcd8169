"""Appending: drafts and their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rockgate.protocol.entry import Buffer, Contents
from rockgate.store.api.queues import Queue
from rockgate.store.log.draft import NO_HOST, NOTHING_ELSE, Draft, Stamp
from rockgate.store.write.append import Appended, AppendedMessages, Intake

__all__ = [
    "NOTHING_ELSE",
    "NO_HOST",
    "Appended",
    "AppendedMessages",
    "Appender",
    "Draft",
    "Intake",
    "Stamp",
    "StateAppender",
]


class StateAppender(Protocol):
    """Appends changes of folds; when a call returns, the folds have applied them."""

    def append_state(self, topic: bytes, body: bytes, *, is_upkeep: bool = False) -> int:
        """Append one change and return its position."""

    def append_states(
        self, changes: Sequence[tuple[bytes, bytes]], *, is_upkeep: bool = False
    ) -> int:
        """Append changes atomically: a restart finds all or none."""

    def group(self, intakes: Sequence[Intake], *, is_upkeep: bool = False) -> list[Appended]:
        """Append entries and changes atomically: a restart finds all or none."""


class Appender(StateAppender, Protocol):
    """Appends to queues; appended entries can be read at once."""

    def batch(
        self,
        queue: Queue,
        body: Buffer,
        *,
        count: int,
        record_ms: int,
        stamp: Stamp | None = None,
        properties: bytes = b"",
        sys_flag: int = 0,
        born_host: bytes = NO_HOST,
    ) -> Appended:
        """Append a batch entry that takes `count` offsets; `stamp` may write into its body."""

    def placed(self, queue: Queue, draft: Draft) -> Appended:
        """Append a message entry whose draft has the queue and its next offset already."""

    def placed_with(self, queue: Queue, draft: Draft, topic: bytes, body: bytes) -> Appended:
        """Append a placed message and a change of a fold atomically."""

    def messages(
        self,
        queue: Queue,
        contents: Contents,
        *,
        born_ms: int,
        born_host: bytes = NO_HOST,
        sys_flag: int = 0,
    ) -> AppendedMessages:
        """Append messages to one queue atomically: a restart finds all or none."""
