"""Cutting a byte stream into frames: four bytes of length, then that many bytes.

A frame that lies whole in one chunk is a slice of it; one that spans chunks is assembled in a
single bytearray. Reading straight into that bytearray (asyncio's BufferedProtocol) was measured and
left out: between 16 KB and 1 MB per frame it saved nothing once malloc keeps its pages.

Invariants: a frame is handed out once, whole, and nobody writes to it afterwards; memory follows
the bytes that arrived, not the length that a peer only promised; the work is linear in the bytes,
however they are split; frames that came before a broken one are never lost.
"""

import struct
from typing import Final, TypeAlias

from rockgate.protocol.kafka.errors import MalformedFrame

Buffer: TypeAlias = bytes | bytearray | memoryview

LENGTH: Final = struct.Struct(">i")


class FrameReader:
    """The receiving half of one connection: owned by a ServerConnection or a ClientConnection.

    `error` is what broke the stream. From then on nothing is read any more.
    """

    __slots__ = ("_partial", "_position", "_size", "error", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.error: MalformedFrame | None = None
        # The frame under way and the size it will have. While the size is -1, the one to three
        # bytes in `_partial` belong to the length itself.
        self._partial = bytearray()
        self._size = -1
        # Where the length of the frame under way lies in the stream.
        self._position = 0

    def feed(self, data: Buffer) -> list[memoryview]:
        """The frames that `data` completes, in order. `data` must not change afterwards."""
        frames: list[memoryview] = []
        if self.error is not None:
            return frames
        view = memoryview(data)
        at = self._resume(view, frames) if self._partial or self._size >= 0 else 0
        end = len(view)
        while end - at >= 4:
            (size,) = LENGTH.unpack_from(view, at)
            if not 0 <= size <= self.frame_bytes_max:
                self._refuse(size)
                return frames
            following = at + 4 + size
            if following > end:
                self._size = size
                at += 4
                break
            frames.append(view[at + 4 : following])
            self._position += 4 + size
            at = following
        if at < end:
            self._partial = bytearray(view[at:])
        return frames

    def _resume(self, view: memoryview, frames: list[memoryview]) -> int:
        """Give the frame under way its share of `view`; returns where the rest begins."""
        at = 0
        if self._size < 0:
            at = min(4 - len(self._partial), len(view))
            self._partial += view[:at]
            if len(self._partial) < 4:
                return at
            (size,) = LENGTH.unpack(self._partial)
            if not 0 <= size <= self.frame_bytes_max:
                self._refuse(size)
                return len(view)
            self._size = size
            self._partial = bytearray()
        share = min(self._size - len(self._partial), len(view) - at)
        self._partial += view[at : at + share]
        if len(self._partial) == self._size:
            frames.append(memoryview(self._partial))
            self._position += 4 + self._size
            self._partial = bytearray()
            self._size = -1
        return at + share

    def _refuse(self, size: int) -> None:
        if size < 0:
            reason = f"frame of negative length {size}"
        else:
            reason = f"frame of {size} bytes is over the limit of {self.frame_bytes_max}"
        self.error = MalformedFrame(f"{reason}, at byte {self._position} of the stream")
