"""Where a group's progress is stored: at its brokers, or in a file if it broadcasts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final, Protocol

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.commits import commit_all
from rockgate.sdk.consumer.offsets.given import GivenOffsets
from rockgate.sdk.consumer.offsets.local import LocalOffsets
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.errors import SdkError
from rockgate.sdk.results import Queue

DEFAULT_FOLDER: Final = ".rocketmq_offsets"
"""In the home of the user, where Apache's client stores its own."""

_log: Final = logging.getLogger(__name__)


class GroupOffsets(Protocol):
    """Persists offsets."""

    async def load(self) -> None:
        """Make ready; once, before anything else."""

    async def read(self, queue: Queue) -> int | None:
        """How far the group is in a queue; None if that is not known."""

    async def persist(
        self,
        offsets: OffsetTable,
        queues: Collection[Queue] | None = None,
        *,
        is_awaited: bool = False,
        is_required: bool = False,
    ) -> None:
        """Persist the changes of all queues or of these; what fails is tried again the next time.

        What is not awaited may be lost in transit. What is required raises if it fails.
        """


class BrokerOffsets:
    """At the master of each queue's broker."""

    def __init__(self, calls: BrokerCalls) -> None:
        self._calls = calls

    async def load(self) -> None:
        """Nothing is stored here."""

    async def read(self, queue: Queue) -> int | None:
        """As the broker has it."""
        return await self._calls.committed(queue)

    async def persist(
        self,
        offsets: OffsetTable,
        queues: Collection[Queue] | None = None,
        *,
        is_awaited: bool = False,
        is_required: bool = False,
    ) -> None:
        """Commit to brokers; one that cannot be reached does not hold up the others."""
        await commit_all(
            self._calls, offsets, queues, is_awaited=is_awaited, is_required=is_required
        )


class FileOffsets:
    """In a file of this machine. It is read and written in threads: a disk may take its time."""

    def __init__(self, file: LocalOffsets) -> None:
        self._file = file
        self._known: dict[Queue, int] = {}
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Read the file."""
        self._known = await asyncio.to_thread(self._file.load)

    async def read(self, queue: Queue) -> int | None:
        """As it was saved."""
        return self._known.get(queue)

    async def persist(
        self,
        offsets: OffsetTable,
        queues: Collection[Queue] | None = None,
        *,
        is_awaited: bool = False,
        is_required: bool = False,
    ) -> None:
        """Write everything that is known, if there is anything new."""
        async with self._writing:
            changed = offsets.unpersisted(queues)
            if not changed:
                return
            known = {**self._known, **changed}
            try:
                await asyncio.to_thread(self._file.save, known)
            except OSError as failed:
                if is_required:
                    raise SdkError(f"Cannot save offsets in {self._file.path}: {failed}.") from None
                _log.warning("offsets could not be saved in %s: %s", self._file.path, failed)
                return
            self._known = known
            for queue, offset in changed.items():
                offsets.persisted(queue, offset)


def offset_store(calls: BrokerCalls, client_id: str, settings: ConsumerSettings) -> GroupOffsets:
    """Where the progress of a group is stored."""
    if settings.offset_store is not None:
        return GivenOffsets(settings.offset_store)
    if settings.model is Model.CLUSTERING:
        return BrokerOffsets(calls)
    folder = settings.offsets_folder or default_folder(client_id, calls.group)
    return FileOffsets(LocalOffsets(folder))


def default_folder(client_id: str, group: str) -> Path:
    """The default folder for the offsets of a broadcasting group of a client."""
    return Path.home() / DEFAULT_FOLDER / client_id / group
