"""Frames of the replication protocol: values to bytes and back.

docs/internals/replication.md specifies them. The bytes of a DATA or a FILE are slices on both
sides: `head_of` packs what goes before them, and a decoded frame refers to what was received.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from rockgate.protocol.errors import ProtocolError

MAGIC: Final = b"RGHA"
VERSION: Final = 2
DATA_BYTES_MAX: Final = 1 << 20
EPOCHS_MAX: Final = 1024
TEXT_BYTES_MAX: Final = 1024
FRAME_BYTES_MAX: Final = DATA_BYTES_MAX + 4096
DIRECTORY_SIZE: Final = 16
NONCE_SIZE: Final = 16
PROOF_SIZE: Final = 32
NO_PROOF: Final = bytes(PROOF_SIZE)

NOT_PRIMARY: Final = 1
OTHER_CLUSTER: Final = 2
OTHER_SEGMENT_SIZE: Final = 3
OLDER_EPOCH: Final = 4
COPY: Final = 5
UNPROVEN: Final = 6
BUSY: Final = 7

_SIZE = struct.Struct(">IB")
_OPENING = struct.Struct(">4sH")
_TEXT = struct.Struct(">H")
_HELLO = struct.Struct(f">{DIRECTORY_SIZE}sIQIBQQ{NONCE_SIZE}s{PROOF_SIZE}sH")
_EPOCH = struct.Struct(f">IQ{DIRECTORY_SIZE}s8s")
_START = struct.Struct(f">IQQI{PROOF_SIZE}s")
_DATA = struct.Struct(">IQQ")
_REPORT = struct.Struct(">IQQQ")
_FILE = struct.Struct(">QQ")
_REASON = struct.Struct(">H")
_NONCE = struct.Struct(f">{NONCE_SIZE}s")
_POSITION_MAX: Final = (1 << 63) - 1


class MalformedReplication(ProtocolError):
    """A frame cannot be decoded; the connection ends."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}.")
        self.reason = reason


class EpochMark(NamedTuple):
    """An epoch that the replica's log has, and where it begins."""

    number: int
    position: int
    directory: bytes
    nonce: bytes


class Hello(NamedTuple):
    """What a replica has."""

    cluster: str
    directory: bytes
    node: int
    segment_bytes: int
    epoch: int
    is_whole: bool
    start: int
    end: int
    nonce: bytes
    proof: bytes
    epochs: tuple[EpochMark, ...]


class Start(NamedTuple):
    """The primary feeds the replica, whose log has to end at `cut`."""

    epoch: int
    cut: int
    committed: int
    node: int
    proof: bytes
    cluster: str


class Refuse(NamedTuple):
    """The primary does not feed the replica."""

    reason: int
    why: str
    address: str


class Data(NamedTuple):
    """Bytes of the log; without any, a sign of life."""

    epoch: int
    position: int
    committed: int
    data: memoryview


class Report(NamedTuple):
    """How far a replica is."""

    epoch: int
    checked: int
    on_disk: int
    applied: int


class FilePart(NamedTuple):
    """Part of a snapshot."""

    name: str
    size: int
    place: int
    data: memoryview


class Greeting(NamedTuple):
    """What a primary sends first."""

    nonce: bytes


Frame: TypeAlias = Hello | Start | Refuse | Data | Report | FilePart | Greeting

KINDS: Final[dict[int, str]] = {
    1: "HELLO",
    2: "START",
    3: "REFUSE",
    4: "DATA",
    5: "REPORT",
    6: "FILE",
    7: "GREETING",
}
FROM_REPLICA: Final = frozenset({1, 5})
"""The kinds that a primary accepts; a replica accepts the others."""


# Encoding


def encode(frame: Hello | Start | Refuse | Report | Greeting) -> bytes:
    """Return a whole frame that has no slices."""
    if isinstance(frame, Hello):
        kind, body = 1, _hello(frame)
    elif isinstance(frame, Start):
        kind, body = 2, _START.pack(*frame[:5]) + _text(frame.cluster)
    elif isinstance(frame, Refuse):
        kind, body = 3, _REASON.pack(frame.reason) + _text(frame.why) + _text(frame.address)
    elif isinstance(frame, Report):
        kind, body = 5, _REPORT.pack(*frame)
    else:
        kind, body = 7, _OPENING.pack(MAGIC, VERSION) + _NONCE.pack(frame.nonce)
    return _SIZE.pack(len(body) + 1, kind) + body


def head_of(frame: Data | FilePart) -> bytes:
    """Return what goes before the bytes of a frame; they follow as they are."""
    if isinstance(frame, Data):
        kind, head = 4, _DATA.pack(*frame[:3])
    else:
        kind, head = 6, _text(frame.name) + _FILE.pack(frame.size, frame.place)
    return _SIZE.pack(len(head) + len(frame.data) + 1, kind) + head


def _hello(hello: Hello) -> bytes:
    fixed = _HELLO.pack(*hello[1:10], len(hello.epochs))
    epochs = b"".join(_EPOCH.pack(*each) for each in hello.epochs)
    return _OPENING.pack(MAGIC, VERSION) + _text(hello.cluster) + fixed + epochs


def _text(text: str) -> bytes:
    encoded = text.encode()[:TEXT_BYTES_MAX].decode(errors="ignore").encode()
    return _TEXT.pack(len(encoded)) + encoded


# Decoding


def decode(body: memoryview, *, of_replica: bool) -> Frame:
    """Return the frame of a kind and body, as the frame reader cut it from the stream.

    MalformedReplication for anything else than a frame that this side may be sent.
    """
    if not body:
        raise MalformedReplication("Frame", "it is empty")
    kind = body[0]
    name = KINDS.get(kind)
    if name is None or (kind in FROM_REPLICA) is not of_replica:
        raise MalformedReplication(name or f"Frame of kind {kind}", "this side does not take it")
    part = _Part(name, body[1:])
    frame = _DECODERS[kind](part)
    part.end()
    return frame


class _Part:
    """The rest of a frame's body."""

    def __init__(self, name: str, view: memoryview) -> None:
        self.name = name
        self.view = view

    def take(self, form: struct.Struct) -> tuple[int | bytes, ...]:
        """Return fixed fields, and continue behind them."""
        if len(self.view) < form.size:
            raise self.wrong(f"{len(self.view)} bytes are left of {form.size}")
        fields: tuple[int | bytes, ...] = form.unpack_from(self.view)
        self.view = self.view[form.size :]
        if any(isinstance(field, int) and field > _POSITION_MAX for field in fields):
            raise self.wrong("a position is out of range")
        return fields

    def text(self) -> str:
        """Return a text."""
        (size,) = self.take(_TEXT)
        assert isinstance(size, int), "by its form"
        if size > min(TEXT_BYTES_MAX, len(self.view)):
            raise self.wrong(f"a text of {size} bytes")
        encoded, self.view = bytes(self.view[:size]), self.view[size:]
        try:
            return encoded.decode()
        except UnicodeDecodeError:
            raise self.wrong("a text is not UTF-8") from None

    def rest(self) -> memoryview:
        """Return all that is left."""
        view, self.view = self.view, self.view[:0]
        return view

    def opening(self) -> None:
        """Check magic and version."""
        magic, version = self.take(_OPENING)
        if magic != MAGIC:
            raise self.wrong("the magic is not that of replication")
        if version != VERSION:
            raise self.wrong(f"version {version!r}; this is version {VERSION}")

    def end(self) -> None:
        """Check that nothing is left."""
        if self.view:
            raise self.wrong(f"{len(self.view)} bytes too many")

    def wrong(self, reason: str) -> MalformedReplication:
        """Return the error."""
        return MalformedReplication(self.name, reason)


def _decode_hello(part: _Part) -> Hello:
    part.opening()
    cluster = part.text()
    *fixed, count = part.take(_HELLO)
    directory, node, segment_bytes, epoch, is_whole, start, end, nonce, proof = fixed
    if not isinstance(count, int) or count > EPOCHS_MAX or count * _EPOCH.size != len(part.view):
        raise part.wrong(f"{count!r} epochs in {len(part.view)} bytes")
    epochs = tuple(EpochMark(*each) for each in _EPOCH.iter_unpack(part.rest()))
    places = [each.position for each in epochs]
    if any(before >= after for before, after in pairwise(places)):
        raise part.wrong("the epochs are not in order")
    if not start <= end or (places and places[-1] >= end):  # type: ignore[operator]
        raise part.wrong("the log ends before its start or its newest epoch")
    if is_whole not in (0, 1):
        raise part.wrong("whole is 0 or 1")
    fields = (directory, node, segment_bytes, epoch, is_whole == 1, start, end, nonce, proof)
    return Hello(cluster, *fields, epochs)  # type: ignore[arg-type]  # by its form


def _decode_start(part: _Part) -> Start:
    epoch, cut, committed, node, proof = part.take(_START)
    fields = (epoch, cut, committed, node, proof)
    return Start(*fields, part.text())  # type: ignore[arg-type]  # by its form


def _decode_refuse(part: _Part) -> Refuse:
    (reason,) = part.take(_REASON)
    return Refuse(reason, part.text(), part.text())  # type: ignore[arg-type]  # by its form


def _decode_data(part: _Part) -> Data:
    epoch, position, committed = part.take(_DATA)
    data = part.rest()
    if len(data) > DATA_BYTES_MAX:
        raise part.wrong(f"{len(data):,} bytes of the log")
    return Data(epoch, position, committed, data)  # type: ignore[arg-type]  # by its form


def _decode_report(part: _Part) -> Report:
    epoch, checked, on_disk, applied = part.take(_REPORT)
    if applied > checked:  # type: ignore[operator]  # by its form
        raise part.wrong("more is applied than checked")
    return Report(epoch, checked, on_disk, applied)  # type: ignore[arg-type]  # by its form


def _decode_file(part: _Part) -> FilePart:
    name = part.text()
    (size, place), data = part.take(_FILE), part.rest()
    if len(data) > DATA_BYTES_MAX or place + len(data) > size:  # type: ignore[operator]
        raise part.wrong(f"{len(data):,} bytes at {place!r} of {size!r}")
    return FilePart(name, size, place, data)  # type: ignore[arg-type]  # by its form


def _decode_greeting(part: _Part) -> Greeting:
    part.opening()
    return Greeting(*part.take(_NONCE))  # type: ignore[arg-type]  # by its form


_DECODERS: Final[dict[int, Callable[[_Part], Frame]]] = {
    1: _decode_hello,
    2: _decode_start,
    3: _decode_refuse,
    4: _decode_data,
    5: _decode_report,
    6: _decode_file,
    7: _decode_greeting,
}
