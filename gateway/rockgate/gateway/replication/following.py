"""Following: a replica's side of replication, from one connection to the next.

What arrives is written and checked at once, and applied a little in each turn of the loop. Where
the log has to be cut or copied, the store must be closed: `outcome` says so, and following
ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from rockgate.gateway.net.address import Address
from rockgate.gateway.replication.session import (
    Disconnected,
    ReplicaRefused,
    ReplicaSession,
    connect,
)
from rockgate.protocol.replication import frames
from rockgate.protocol.replication.frames import (
    NO_PROOF,
    Data,
    EpochMark,
    FilePart,
    Hello,
    Report,
    Start,
)

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 10.0
PENDING_BYTES_MAX: Final = 4 << 20
"""How much may wait to be written or applied before no more is read."""


class Replica(Protocol):
    """The log of this replica."""

    @property
    def received(self) -> int:
        """Everything before this position was written."""

    @property
    def checked(self) -> int:
        """Everything before this position is whole groups of valid entries."""

    @property
    def applied(self) -> int:
        """The end of the log."""

    @property
    def on_disk(self) -> int:
        """Everything before this position is on disk."""

    @property
    def directory(self) -> bytes:
        """The id of its data directory."""

    def begin(self) -> None:
        """Expect the bytes from the end of the log on."""

    def receive(self, position: int, data: memoryview) -> bool:
        """Write bytes; say whether that was possible now."""

    def apply(self) -> bool:
        """Apply some of what is checked; say whether there is more."""

    def committed(self, position: int) -> None:
        """Show what the primary says is committed."""


class Standing(NamedTuple):
    """What a replica says of itself."""

    cluster: str
    node: int
    segment_bytes: int
    epoch: int
    start: int
    committed: int
    epochs: Sequence[EpochMark]


class Own(Protocol):
    """What is known of this replica's store."""

    def standing(self) -> Standing:
        """Return it as it is now."""


class Mending(NamedTuple):
    """Why following ended: the store has to be closed for it."""

    cut: int
    """Where the log has to end; unless it is to be copied."""
    is_copy: bool


class Stopped(Exception):  # what happened, not what is wrong
    """Something that another attempt does not mend."""


class Follower:
    """Follows one primary for as long as the server runs."""

    def __init__(self, replica: Replica, own: Own, primary: Address, secret: bytes) -> None:
        self._replica = replica
        self._own = own
        self._primary = primary
        self._secret = secret
        self._session: ReplicaSession | None = None
        self._pending: deque[Data] = deque()
        self._pending_bytes = 0
        self._is_paused = self._is_scheduled = self._is_closed = False
        self._epoch = 0
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Mending] = self._loop.create_future()
        self.is_connected = False
        self.primary_end = 0
        """The end of what the primary has sent."""
        self.connected_count = 0
        self.failure = ""
        """Why the last connection ended."""
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        while not self.outcome.done():
            seconds = AGAIN_SECONDS
            try:
                await self._once()
            except (OSError, TimeoutError) as error:
                self._failed(f"Cannot connect to {self._primary}: {error or 'timeout'}.")
            except ReplicaRefused as refused:
                if refused.reason == frames.COPY:
                    self.outcome.set_result(Mending(0, is_copy=True))
                    return
                seconds = REFUSED_SECONDS
                self._failed(f"The primary {self._primary} refuses this replica: {refused}")
            except Stopped as stopped:
                seconds = REFUSED_SECONDS
                self._failed(str(stopped))
            except Disconnected as lost:
                self._failed(f"Connection to {self._primary}: {lost}")
            except Exception as error:
                self._failed(f"Following {self._primary}: {error}")
                log.exception("following failed")
            await asyncio.sleep(seconds)

    def _failed(self, why: str) -> None:
        if why != self.failure:
            log.warning("not following: %s", why)
        self.failure = why

    async def _once(self) -> None:
        primary = self._primary
        self._session = await connect(
            primary.host, primary.port, lambda: ReplicaSession(self, self._secret)
        )
        try:
            reason = await self._session.ended
        finally:
            self._session.end(Disconnected("The server stops."))
            self.is_connected = self._is_paused = False
            self._pending.clear()
            self._pending_bytes = 0
        if not self.outcome.done():
            raise reason

    # What the session asks and tells

    def hello(self, nonce: bytes) -> Hello:
        """Return what this replica has."""
        replica = self._replica
        replica.begin()
        own = self._own.standing()
        epochs = tuple(EpochMark(*each) for each in own.epochs[-frames.EPOCHS_MAX :])
        return Hello(
            own.cluster,
            replica.directory,
            own.node,
            own.segment_bytes,
            own.epoch,
            True,
            own.start,
            replica.applied,
            nonce,
            NO_PROOF,
            epochs,
        )

    def started(self, start: Start) -> None:
        """Follow, cut or copy."""
        own, end = self._own.standing(), self._replica.applied
        if start.cluster != own.cluster:
            raise Stopped(f"The primary is of cluster {start.cluster}, this is {own.cluster}.")
        if start.node == own.node:
            raise Stopped(f"The primary is node {start.node} too: set another server.node_id.")
        if start.epoch < own.epoch:
            raise Stopped(f"The primary is of epoch {start.epoch}; this log is of {own.epoch}.")
        if start.cut < own.committed:
            raise Stopped(
                f"The primary has the log up to {start.cut:,} only, and said that {own.committed:,}"
                " was committed. If it was restored on purpose, empty this data directory."
            )
        self._epoch = start.epoch
        if start.cut != end:
            self._end(Mending(start.cut, is_copy=start.cut > end))
            return
        self.is_connected = True
        self.connected_count += 1
        self.failure = ""
        self.primary_end = start.cut
        log.info("following primary=%s position=%d epoch=%d", self._primary, end, start.epoch)
        self._replica.committed(start.committed)

    def _end(self, outcome: Mending) -> None:
        self.outcome.set_result(outcome)
        assert self._session is not None, "it speaks"
        self._session.end(Disconnected("The store has to be closed."))

    def data(self, frame: Data) -> None:
        """Take bytes of the log."""
        if frame.epoch != self._epoch:
            raise Disconnected(f"The primary speaks of epoch {frame.epoch}.")
        self._pending.append(frame)
        self._pending_bytes += len(frame.data)
        self._pump()

    def file(self, part: FilePart) -> None:
        """Refuse it: this replica has a log."""
        raise Disconnected(f"The primary sends the file {part.name!r} unasked.")

    # Working off

    def _pump(self) -> None:
        """Write one frame, apply a little, and report."""
        session, replica = self._session, self._replica
        if session is None or session.ended.done():
            return
        try:
            if self._pending:
                frame = self._pending[0]
                if replica.receive(frame.position, frame.data):
                    self._pending.popleft()
                    self._pending_bytes -= len(frame.data)
                    self.primary_end = max(self.primary_end, replica.received)
                    replica.committed(frame.committed)
            has_more = replica.apply() or bool(self._pending)
        except Exception as error:  # noqa: BLE001  # it ends the connection; the task decides
            session.end(error)
            return
        self._report(session)
        behind = self._pending_bytes + replica.checked - replica.applied
        if self._is_paused is not (behind > PENDING_BYTES_MAX):
            self._is_paused = not self._is_paused
            session.pause(self._is_paused)
        if has_more and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        self._is_scheduled = False
        self._pump()

    def _report(self, session: ReplicaSession) -> None:
        replica = self._replica
        session.report(Report(self._epoch, replica.checked, replica.on_disk, replica.applied))

    @property
    def lag_bytes(self) -> int:
        """How many bytes were received and are not applied."""
        return max(0, self.primary_end - self._replica.applied)

    async def close(self) -> None:
        """Stop following; what is checked stays."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._session is not None:
            self._session.end(Disconnected("The server stops."))
