"""Both ends of a remoting connection, sans-IO: bytes in, commands and bytes out.

    receive_data(data)          the commands that `data` completes: requests of the peer's, and
                                responses to requests of ours, in the order received
    respond(request, answer)    a response, in any order; its opaque is the request's
    request(code, …)            a request of our own, which either end may send at any time
    data_to_send()              everything queued, for one `writelines`

Unlike in Kafka's protocol, responses come in any order: a pull may wait while later sends are
answered. A broken stream raises ProtocolError only after every command before the break was
returned. Nothing here depends on sockets, time or what a request means. Server and client are the
same class.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.frames import FrameReader, Spares
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, RESPONSE_FLAG
from rockgate.protocol.remoting.command import (
    JSON,
    Buffer,
    Command,
    Fields,
    encode,
    encode_head,
)
from rockgate.protocol.remoting.errors import TooManyPending
from rockgate.protocol.remoting.hot.requests import decode

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""RocketMQ's own default (com.rocketmq.remoting.frameMaxLength)."""
PENDING_MAX: Final = 65_536
"""The most requests of ours that may wait for responses at the same time."""

Write: TypeAlias = Callable[[int, int, int], bytes]
"""Writes everything of a frame before its body, from opaque, flag and the body's size."""


class Connection:
    """One end. `pending` has our requests by opaque, until they are answered or abandoned."""

    def __init__(
        self,
        *,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        pending_max: int = PENDING_MAX,
        encoding: int = JSON,
        language: str = "PYTHON",
        spares: Spares | None = None,
    ) -> None:
        self.encoding = encoding
        self.language = language
        self.pending_max = pending_max
        self.pending: dict[int, int] = {}
        """The code of each pending request of ours, by its opaque."""
        self.dropped_bytes = 0
        """Bytes of unexpected responses, which byte counters must include."""
        self._reader = FrameReader(frame_bytes_max, spares)
        self._out: list[Buffer] = []
        self._next_opaque = 0
        self._error: ProtocolError | None = None

    # Receiving

    def receive_data(self, data: Buffer) -> list[Command]:
        """The commands that `data` completes. `data` must not change afterwards.

        Raises when the stream breaks, but commands before the break are returned first: the error
        is then raised by the next call, which may pass no data. An unexpected response is dropped:
        its request may have been abandoned.
        """
        return self._read([] if self._error is not None else self._reader.feed(data))

    def room(self) -> memoryview | None:
        """The buffer for the next bytes of a large frame under way, if there is one."""
        return self._reader.room() if self._error is None else None

    def filled(self, count: int) -> list[Command]:
        """As `receive_data`, for bytes received into the buffer of `room`."""
        return self._read(self._reader.filled(count))

    def _read(self, frames: list[memoryview]) -> list[Command]:
        commands: list[Command] = []
        try:
            for frame in frames:
                command = decode(frame)
                if command.flag & RESPONSE_FLAG and (
                    self.pending.pop(command.opaque, None) is None
                ):
                    self.dropped_bytes += len(frame) + 4
                    continue
                commands.append(command)
        except ProtocolError as broken:
            self._error = broken
        if not commands:
            self.raise_broken()
        return commands

    def forget(self) -> None:
        """Release everything received: the connection is closed."""
        self._reader.forget()

    def raise_broken(self) -> None:
        """Raise what broke the stream, if something did."""
        error = self._error or self._reader.error
        if error is not None:
            raise error

    @property
    def is_broken(self) -> bool:
        """Whether the stream cannot be read any further."""
        return self._error is not None or self._reader.error is not None

    # Sending

    def respond(self, request: Command, answer: Command) -> None:
        """Queue the response to a request, in its encoding; a one-way request gets none."""
        if request.flag & ONEWAY_FLAG:
            return
        answer.opaque = request.opaque
        answer.flag = RESPONSE_FLAG
        answer.encoding = request.encoding
        self._out.append(encode(answer))
        if len(answer.body):
            self._out.append(answer.body)

    def send_encoded(self, buffers: list[Buffer]) -> None:
        """Queue a frame of a hand-written codec."""
        self._out += buffers

    def request(
        self,
        code: int,
        fields: Fields | None = None,
        body: Buffer = b"",
        *,
        oneway: bool = False,
    ) -> int:
        """Queue a request and return its opaque, which its response will carry."""
        opaque = self._number()
        command = Command(
            code,
            fields,
            body,
            opaque=opaque,
            flag=ONEWAY_FLAG if oneway else 0,
            encoding=self.encoding,
            language=self.language,
        )
        if not oneway:
            self.pending[opaque] = code
        self._out.append(encode(command))
        if len(body):
            self._out.append(body)
        return opaque

    def request_written(
        self, code: int, write: Write, body: Buffer = b"", *, oneway: bool = False
    ) -> int:
        """The same for a header that `write` encodes."""
        opaque = self._number()
        head = write(opaque, ONEWAY_FLAG if oneway else 0, len(body))
        if not oneway:
            self.pending[opaque] = code
        self._out.append(head)
        if len(body):
            self._out.append(body)
        return opaque

    def give_up(self, opaque: int) -> None:
        """Stop waiting for a response; if it arrives later, it is dropped."""
        self.pending.pop(opaque, None)

    def data_to_send(self) -> list[Buffer]:
        """The buffers of everything queued, in that order; each is returned once."""
        out, self._out = self._out, []
        return out

    def _number(self) -> int:
        if len(self.pending) >= self.pending_max:
            raise TooManyPending(f"{len(self.pending):,} requests are already in flight.")
        opaque = self._next_opaque
        while opaque in self.pending:
            opaque = opaque + 1 & 0x7FFFFFFF
        self._next_opaque = opaque + 1 & 0x7FFFFFFF
        return opaque


def writer(code: int, fields: Fields) -> Write:
    """Writes a header of these fields, as JSON."""

    def write(opaque: int, flag: int, body_size: int) -> bytes:
        head = Command(code, fields, opaque=opaque, flag=flag)
        return encode_head(head, body_size)

    return write
