"""Dumps log entries as rows; bodies are not decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.store.check.logwalk import COMMITLOG, Damaged, Filler, Row, Whole
from rockgate.store.files.interface import Directory

_TRANSACTION: Final = envelope.TRANSACTION_ROLLBACK
_TRANSACTIONS: Final = {
    envelope.TRANSACTION_PREPARED: "prepared",
    envelope.TRANSACTION_COMMIT: "committed",
    envelope.TRANSACTION_ROLLBACK: "rolled-back",
}
_FLAGS: Final = {
    envelope.COMPRESSED: "compressed",
    envelope.MULTI_TAGS: "multi-tags",
    envelope.BORN_HOST_V6: "born-host-v6",
    envelope.STORE_HOST_V6: "store-host-v6",
    envelope.INNER_BATCH: "inner-batch",
    envelope.MOVED: "moved",
    envelope.CONTINUES: "continues",
    envelope.DELAYED: "delayed",
}


class DumpRow(NamedTuple):
    """One entry, or what is found in its place."""

    position: int
    size: int
    kind: str
    """message, batch, state, filler or damaged."""
    topic: str = ""
    queue_id: int = 0
    offset: int = -1
    offset_count: int = 0
    store_ms: int = 0
    born_ms: int = 0
    flags: tuple[str, ...] = ()
    body_size: int = 0
    properties: dict[str, str] = {}  # noqa: RUF012  # never changed
    reason: str = ""
    """What is wrong with damaged bytes."""


def dump(
    directory: Directory, start: int | None = None, end: int | None = None
) -> Iterator[DumpRow]:
    """Yield everything between two positions, from the first valid entry at or after the start.

    The start need not be the position of an entry: the walk begins with its segment.
    """
    row = Row(directory.child(COMMITLOG))
    first = row.start if start is None else max(start, row.start)
    try:
        segment = row.find(first)
        if segment is None:
            return
        for piece in row.walk(segment.start, row.end if end is None else end):
            if piece.position < first:
                continue
            if isinstance(piece, Whole):
                yield _entry(piece)
            elif isinstance(piece, Filler):
                yield DumpRow(piece.position, piece.size, "filler")
            elif isinstance(piece, Damaged):
                yield DumpRow(piece.position, piece.size, "damaged", reason=piece.reason)
    finally:
        row.close()


def _entry(piece: Whole) -> DumpRow:
    entry = piece.entry
    kind = "state" if entry.queue_offset < 0 else "batch" if entry.is_batch else "message"
    return DumpRow(
        piece.position,
        piece.size,
        kind,
        entry.topic.decode("utf-8", "replace"),
        entry.queue_id,
        entry.queue_offset,
        entry.offset_count,
        entry.store_ms,
        entry.born_ms,
        flag_names(entry.sys_flag),
        entry.body_size,
        envelope.parse_properties(envelope.properties_of(piece.view, entry)),
    )


def flag_names(sys_flag: int) -> tuple[str, ...]:
    """Return the names of an entry's flags; bits without a name as a number."""
    names = [name for flag, name in _FLAGS.items() if sys_flag & flag]
    if sys_flag & _TRANSACTION:
        names.append(_TRANSACTIONS[sys_flag & _TRANSACTION])
    rest = sys_flag & ~(_TRANSACTION | sum(_FLAGS))
    if rest:
        names.append(hex(rest & 0xFFFFFFFF))
    return tuple(names)
