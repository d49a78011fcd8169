"""Copying: a replica without a log of its own gets the primary's snapshot, and its log.

The same connection introduces a replica that does not know its cluster yet: START names it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from rockgate.gateway.net.address import Address
from rockgate.gateway.replication.session import Disconnected, ReplicaSession, connect
from rockgate.protocol.replication.frames import (
    DIRECTORY_SIZE,
    NO_PROOF,
    Data,
    FilePart,
    Hello,
    Report,
    Start,
)

log = logging.getLogger(__name__)


class Copy(Protocol):
    """A copy under way."""

    @property
    def checked(self) -> int:
        """How far the log is whole."""

    @property
    def is_complete(self) -> bool:
        """Whether the log has all that the snapshot needs."""

    def file(self, name: str, size: int, place: int, data: memoryview) -> None:
        """Write part of the snapshot."""

    def receive(self, position: int, data: memoryview) -> None:
        """Write bytes of the log."""


class Empty:
    """A replica that has nothing: it is introduced, or copies."""

    def __init__(
        self,
        cluster: str,
        node: int,
        segment_bytes: int,
        begin: Callable[[int], Copy | None] = lambda start: None,
    ) -> None:
        """`begin` begins the copy of a log that starts at a position; None to end there."""
        self._begin = begin
        self._cluster = cluster
        self._node = node
        self._segment_bytes = segment_bytes
        self.session: ReplicaSession | None = None
        self.start: asyncio.Future[Start] = asyncio.get_running_loop().create_future()
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._copy: Copy | None = None

    def hello(self, nonce: bytes) -> Hello:
        """Say that there is nothing."""
        fixed = self._cluster, bytes(DIRECTORY_SIZE), self._node, self._segment_bytes
        return Hello(*fixed, 0, True, 0, 0, nonce, NO_PROOF, ())

    def started(self, start: Start) -> None:
        """Note it, and begin."""
        self._copy = self._begin(start.cut)
        self.start.set_result(start)
        if self._copy is None:
            raise Disconnected("That is all.")

    def data(self, frame: Data) -> None:
        """Write bytes of the log."""
        assert self._copy is not None, "it was begun"
        self._copy.receive(frame.position, frame.data)
        self._report(frame.epoch)
        if self._copy.is_complete and not self.complete.done():
            self.complete.set_result(None)
            raise Disconnected("The copy is complete.")

    def file(self, part: FilePart) -> None:
        """Write part of the snapshot."""
        assert self._copy is not None, "it was begun"
        self._copy.file(*part)
        self._report(self.start.result().epoch)

    def _report(self, epoch: int) -> None:
        if self.session is not None and self._copy is not None:
            checked = self._copy.checked
            self.session.report(Report(epoch, checked, checked, checked))


async def ask(primary: Address, empty: Empty, secret: bytes) -> Exception:
    """Connect once, and return why the connection ended."""
    empty.session = await connect(primary.host, primary.port, lambda: ReplicaSession(empty, secret))
    try:
        return await empty.session.ended
    finally:
        empty.session.end(Disconnected("The server stops."))
