"""Progress of a broadcasting group, in a file of this machine.

Every member of such a group reads everything, so no broker knows the progress of any one of them.
The file has the layout of Apache's client (`offsets.json`, maps with objects as keys), so that a
program that changes its client resumes where it was.

    write    offsets.json.new, fsync ──► offsets.json becomes .bak ──► .new takes its place
    read     offsets.json, or offsets.json.bak where that one is missing or damaged

A crash between any two steps leaves one of them intact.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import MessageQueue
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.sdk.errors import SdkError
from rockgate.sdk.results import Queue

FILE: Final = "offsets.json"
SIZE_MAX: Final = 1 << 20


class OffsetsDamaged(SdkError):
    """Neither the file nor its backup can be read."""


class _Body(msgspec.Struct, kw_only=True, rename="camel"):
    """The file."""

    offset_table: Keyed[MessageQueue, int]


class LocalOffsets:
    """The offsets of one group in one folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._backup = folder / f"{FILE}.bak"
        self._new = folder / f"{FILE}.new"

    def load(self) -> dict[Queue, int]:
        """The offsets saved last; none at the first start."""
        problems: list[str] = []
        for path in (self.path, self._backup):
            try:
                return _read(path.read_bytes())
            except FileNotFoundError:
                continue
            except (OSError, MalformedRequest) as wrong:
                problems.append(f"{path}: {str(wrong).rstrip('.')}")
        if problems:
            raise OffsetsDamaged(
                f"Local offsets cannot be read ({'; '.join(problems)}). "
                f"Remove {self.path} to start where new groups start."
            )
        return {}

    def save(self, offsets: dict[Queue, int]) -> None:
        """Replace the saved offsets atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._new.open("wb") as file:
            file.write(_write(offsets))
            file.flush()
            os.fsync(file.fileno())
        if self.path.exists():
            self.path.replace(self._backup)
        self._new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(data: bytes) -> dict[Queue, int]:
    body = javajson.decode(data, _Body, "offsets", size_max=SIZE_MAX)
    return {
        Queue(queue.topic, queue.broker_name, queue.queue_id): offset
        for queue, offset in body.offset_table.items.items()
    }


def _write(offsets: dict[Queue, int]) -> bytes:
    table = {
        MessageQueue(broker_name=queue.broker, queue_id=queue.id, topic=queue.topic): offset
        for queue, offset in sorted(offsets.items())
    }
    return javajson.encode(_Body(offset_table=Keyed(table)))
