"""Progress in a store of the application's own: a table next to its results, for example."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.settings import OffsetStore
from rockgate.sdk.results import Queue

_log: Final = logging.getLogger(__name__)


class GivenOffsets:
    """Where a group's progress is persisted if its application brings a store."""

    def __init__(self, store: OffsetStore) -> None:
        self._store = store

    async def load(self) -> None:
        """Make ready."""
        await self._store.load()

    async def read(self, queue: Queue) -> int | None:
        """As the application has it."""
        return await self._store.read(queue)

    async def persist(
        self,
        offsets: OffsetTable,
        queues: Collection[Queue] | None = None,
        *,
        is_awaited: bool = False,
        is_required: bool = False,
    ) -> None:
        """Let the application's store save the changes."""
        changed = offsets.unpersisted(queues)
        if not changed:
            return
        try:
            await self._store.save(changed)
        except Exception:  # the application's own code: whatever it raises
            if is_required:
                raise
            _log.exception("%d offsets could not be saved", len(changed))
            return
        for queue, offset in changed.items():
            offsets.persisted(queue, offset)
