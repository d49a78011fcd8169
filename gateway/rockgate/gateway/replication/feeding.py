"""Feeding: the primary's side of replication, one session for each replica.

docs/internals/replication.md has the frames. A turn of the loop sends at most one frame of log to a
replica, as a slice of the mapped segment, and nothing while the replica does not read. Whatever
breaks the protocol closes the connection.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.replication.config import ReplicationConfig
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.frames import FrameReader
from rockgate.protocol.replication import frames
from rockgate.protocol.replication.frames import Data, EpochMark, FilePart, Hello, Report
from rockgate.protocol.replication.proof import PRIMARY, REPLICA, is_proven, proof

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 0.02
"""How often changes are looked for that no append of a message announces."""
SILENCE_SECONDS: Final = 10.0
"""After this time without a report a replica is disconnected."""
PIN_SECONDS: Final = 600.0
"""How long log is retained for a replica that disconnected."""
BUFFERED_BYTES_MAX: Final = 4 << 20
HELLO_BYTES_MAX: Final = 64 << 10


class SentFile(Protocol):
    """A snapshot that is being sent."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def size(self) -> int:
        """Its size."""

    @property
    def read(self) -> Callable[[int, int], bytes]:
        """Read bytes from a place on."""

    @property
    def close(self) -> Callable[[], None]:
        """Close it."""


class SentLog(Protocol):
    """The log that is sent."""

    @property
    def segment_bytes(self) -> int:
        """The size of its segments."""

    @property
    def start(self) -> int:
        """The first position that is still there."""

    @property
    def end(self) -> int:
        """The end of the log."""

    @property
    def committed(self) -> int:
        """The committed position."""

    @property
    def epoch(self) -> int:
        """The epoch of this run."""

    def piece(self, position: int, size_max: int) -> memoryview | None:
        """Return bytes from a position on, of one segment; None if they are gone."""

    def cut(self, epochs: Sequence[EpochMark], end: int) -> int | None:
        """Return where a replica's log has to end; None if it cannot use its log."""

    def snapshot(self) -> SentFile | None:
        """Open the newest snapshot."""


class Feeding:
    """All replicas of this server. Belongs to the loop."""

    def __init__(
        self,
        sent: SentLog,
        *,
        cluster: str,
        node: int,
        secret: bytes,
        config: ReplicationConfig,
        clock: Clock,
    ) -> None:
        self.sent = sent
        self.cluster = cluster
        self.node = node
        self.secret = secret
        self.clock = clock
        self._config = config
        self.sessions: dict[FeedSession, None] = {}
        self._gone: dict[bytes, tuple[float, int]] = {}
        self._is_scheduled = False
        self._timer: Timer | None = None

    def session(self) -> FeedSession:
        """Return the protocol of a new connection."""
        return FeedSession(self)

    def opened(self, session: FeedSession) -> bool:
        """Add a session; False if there are too many."""
        if len(self.sessions) >= self._config.replicas_max:
            return False
        self.sessions[session] = None
        if self._timer is None:
            self._timer = self.clock.call_later(LOOK_SECONDS, self._look)
        return True

    def lost(self, session: FeedSession) -> None:
        """Remove a session, and keep its place for a while."""
        self.sessions.pop(session, None)
        if session.directory:
            until = self.clock.time() + PIN_SECONDS
            self._gone[session.directory] = (until, session.applied)

    def pinned(self) -> int:
        """Return the position from which on segments stay for replicas, within the limit."""
        now, end = self.clock.time(), self.sent.end
        self._gone = {each: gone for each, gone in self._gone.items() if gone[0] > now}
        live = {each.directory for each in self.sessions}
        places = [each.applied for each in self.sessions if each.is_started]
        places += [place for each, (_, place) in self._gone.items() if each not in live]
        return max(min(places, default=end), end - self._config.retain_bytes)

    def wake(self) -> None:
        """Send what is new, in the next turn of the loop."""
        if self.sessions and not self._is_scheduled:
            self._is_scheduled = True
            self.clock.call_later(0, self._pump)

    def _pump(self) -> None:
        self._is_scheduled = False
        for session in list(self.sessions):
            if session.pump():
                self.wake()

    def _look(self) -> None:
        self._timer = None
        for session in list(self.sessions):
            session.look()
        self._pump()
        if self.sessions:
            self._timer = self.clock.call_later(LOOK_SECONDS, self._look)

    def close(self) -> None:
        """Close all connections."""
        if self._timer is not None:
            self._timer.cancel()
        for session in list(self.sessions):
            session.close("the server stops")


class FeedSession(asyncio.Protocol):
    """One replica's connection."""

    def __init__(self, feeding: Feeding) -> None:
        self._feeding = feeding
        self._frames = FrameReader(HELLO_BYTES_MAX)
        self._nonce = secrets.token_bytes(frames.NONCE_SIZE)
        self._transport: Any = None
        self._is_paused = False
        self._copy: asyncio.Task[None] | None = None
        self.is_started = False
        """Whether it got START."""
        self.is_fed = False
        """Whether it gets the log."""
        self.node = 0
        self.peer = ""
        self.directory = b""
        self.sent = self.checked = self.on_disk = self.applied = 0
        self._sent_committed = -1
        self._sent_at = self._heard_at = feeding.clock.time()

    # The transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if name else "unknown"
        self._transport.set_write_buffer_limits(high=BUFFERED_BYTES_MAX)
        if not self._feeding.opened(self):
            self._refuse(frames.BUSY, "There are replicas enough.")
            return
        self._transport.write(frames.encode(frames.Greeting(self._nonce)))

    def data_received(self, data: bytes) -> None:
        """Take a HELLO or reports."""
        self._heard_at = self._feeding.clock.time()
        try:
            for body in self._frames.feed(data):
                self._take(frames.decode(body, of_replica=True))
            if self._frames.error is not None:
                raise self._frames.error
        except ProtocolError as error:
            self.close(str(error))

    def pause_writing(self) -> None:
        """Wait: the replica does not read."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Continue."""
        self._is_paused = False
        self._feeding.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the session."""
        if self._copy is not None:
            self._copy.cancel()
        self._feeding.lost(self)
        if self.is_started:
            log.info("replica disconnected node=%d peer=%s", self.node, self.peer)

    def close(self, reason: str) -> None:
        """Close the connection."""
        log.info("replica connection closed peer=%s reason=%s", self.peer, reason)
        self.is_fed = False
        if self._transport is not None:
            self._transport.close()

    # Frames

    def _take(self, frame: frames.Frame) -> None:
        if isinstance(frame, Hello):
            if self.is_started:
                raise ProtocolError("A second HELLO.")
            self._begin(frame)
        elif isinstance(frame, Report):
            self._report(frame)

    def _begin(self, hello: Hello) -> None:
        feeding, sent = self._feeding, self._feeding.sent
        expected = proof(feeding.secret, REPLICA, self._nonce, hello.nonce)
        newest = max((each.number for each in hello.epochs), default=0)
        if not is_proven(hello.proof, expected):
            self._refuse(frames.UNPROVEN, "The secrets differ.")
        elif hello.cluster != feeding.cluster and (hello.cluster or hello.end):
            self._refuse(frames.OTHER_CLUSTER, f"This is cluster {feeding.cluster}.")
        elif hello.segment_bytes != sent.segment_bytes:
            why = f"The primary's segments have {sent.segment_bytes:,} bytes."
            self._refuse(frames.OTHER_SEGMENT_SIZE, why)
        elif max(newest, hello.epoch) > sent.epoch:
            self._refuse(frames.OLDER_EPOCH, f"This is epoch {sent.epoch}.")
        elif (cut := sent.cut(hello.epochs, hello.end)) is None:
            self._refuse(frames.COPY, "The log has nothing in common with this one.")
        else:
            self._start(hello, cut)

    def _refuse(self, reason: int, why: str) -> None:
        self._transport.write(frames.encode(frames.Refuse(reason, why, "")))
        self.close(why)

    def _start(self, hello: Hello, cut: int) -> None:
        feeding, sent = self._feeding, self._feeding.sent
        self.is_started, self.node, self.directory = True, hello.node, hello.directory
        self.sent = self.checked = self.on_disk = self.applied = cut
        ours = proof(feeding.secret, PRIMARY, self._nonce, hello.nonce)
        start = frames.Start(sent.epoch, cut, sent.committed, feeding.node, ours, feeding.cluster)
        self._transport.write(frames.encode(start))
        log.info("replica connected node=%d peer=%s cut=%d", self.node, self.peer, cut)
        if not hello.end and cut:
            self._copy = asyncio.get_running_loop().create_task(self._send_snapshot())
        else:
            self.is_fed = cut >= hello.end  # otherwise it cuts, and connects again
        feeding.wake()

    async def _send_snapshot(self) -> None:
        file = self._feeding.sent.snapshot()
        if file is None:
            self.close("there is no snapshot yet")
            return
        try:
            place = 0
            while place < file.size and not self._transport.is_closing():
                if self._is_paused:
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
                data = await asyncio.to_thread(file.read, place, frames.DATA_BYTES_MAX)
                part = FilePart(file.name, file.size, place, memoryview(data))
                self._transport.writelines([frames.head_of(part), part.data])
                place += len(data)
            self.is_fed = True
            self._feeding.wake()
        finally:
            file.close()

    def _report(self, report: Report) -> None:
        if not self.is_started or report.epoch != self._feeding.sent.epoch:
            raise ProtocolError("A report of another epoch, or before START.")
        if report.checked > self.sent or report.checked < self.checked:
            raise ProtocolError(f"A report of {report.checked}; {self.sent} was sent.")
        self.checked, self.on_disk, self.applied = report.checked, report.on_disk, report.applied

    # Sending

    def pump(self) -> bool:
        """Send one frame of what is new; say whether there is more."""
        sent = self._feeding.sent
        if not self.is_fed or self._is_paused or self._transport.is_closing():
            return False
        committed = sent.committed
        data = sent.piece(self.sent, frames.DATA_BYTES_MAX) if self.sent < sent.end else b""
        if data is None:
            self.close(f"position {self.sent} was removed")
            return False
        now = self._feeding.clock.time()
        is_due = now - self._sent_at >= HEARTBEAT_SECONDS or committed != self._sent_committed
        if not data and not is_due:
            return False
        frame = Data(sent.epoch, self.sent, committed, memoryview(data))
        self._transport.writelines([frames.head_of(frame), frame.data])
        self.sent += len(data)
        self._sent_committed, self._sent_at = committed, now
        return self.sent < sent.end

    def look(self) -> None:
        """Close the connection of a replica that is silent."""
        if self._feeding.clock.time() - self._heard_at > SILENCE_SECONDS:
            self.close("it says nothing")
