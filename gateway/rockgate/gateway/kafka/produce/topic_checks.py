"""Examines produced batches where a topic's settings require it before the append.

Compacted topics, `validate.batches`, a `compression.type` other than the producer's, and records
that may be delayed (`message.type`) require a batch to be opened; it is opened once for all of
them. Light batches are examined on the loop, others by a thread, while later batches wait for their
turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.delay.headers import Asked, Opened, sifted
from rockgate.gateway.kafka.produce.validate import TopicSettings, too_large
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.batch import BatchHeader, Buffer, Compression
from rockgate.protocol.kafka.records.bounds import LIGHT, Bounds, is_heavy
from rockgate.protocol.kafka.records.compression import Plain, compress
from rockgate.protocol.kafka.records.record import open_records, walk_records
from rockgate.protocol.kafka.records.sifting import BAD_MAX, Wanted

WAITS_MAX: Final = 500
"""Records that are scheduled together with their batch: about a millisecond's work."""


class Waits(NamedTuple):
    """The delayed records of a batch, and the batch without them."""

    total: int
    indexes: Sequence[int]
    asked: Sequence[Asked]
    """Of each of them, unless there are more than WAITS_MAX: then of none."""
    rest_count: int
    rest_max_ms: int
    rest: bytearray | None
    """The visible part of the batch, if it was built already."""

    @classmethod
    def of(cls, opened: Opened, *, makes_rest: bool) -> Waits:
        """Copy what is needed from an opened batch, and release its records."""
        count = len(opened.indexes)
        is_few = count <= WAITS_MAX
        return cls(
            count,
            list(opened.indexes) if is_few else (),
            opened.found if is_few else (),
            opened.rest_count,
            opened.rest_max_ms,
            opened.rest() if makes_rest else None,
        )


class Examined(NamedTuple):
    """A batch as it will be stored."""

    body: Buffer
    waits: Waits | None
    """None if no record is delayed."""


Outcome = Examined | MalformedBatch | RequestError
"""The outcome for a batch: what is stored, or why it is rejected."""


class Examining:
    """Examines batches. One for all connections; belongs to the loop's thread."""

    def __init__(self, threads: BatchThreads, wanted: Callable[[], Wanted[Asked]]) -> None:
        self._threads = threads
        self._wanted = wanted

    def on_loop(
        self, records: Buffer, header: BatchHeader, settings: TopicSettings
    ) -> Outcome | None:
        """Examine a batch now; None if it is not light, and a thread must."""
        if is_heavy(records):
            return None
        outcome = _outcome(records, header, settings, self._wanted(), LIGHT)
        return None if isinstance(outcome, BatchTooLarge) else outcome

    async def in_thread(
        self, records: Buffer, header: BatchHeader, settings: TopicSettings
    ) -> Outcome:
        """Examine a batch in a thread."""
        wanted, bounds = self._wanted(), self._threads.bounds
        return await self._threads.run(
            partial(_outcome, records, header, settings, wanted, bounds, makes_rest=True)
        )


def _outcome(
    records: Buffer,
    header: BatchHeader,
    settings: TopicSettings,
    wanted: Wanted[Asked],
    bounds: Bounds,
    *,
    makes_rest: bool = False,
) -> Outcome:
    try:
        return _examine(records, header, settings, wanted, bounds, makes_rest=makes_rest)
    except (MalformedBatch, RequestError) as error:
        # Its frames reference the decompressed data.
        return error.with_traceback(None)


def _examine(
    records: Buffer,
    header: BatchHeader,
    settings: TopicSettings,
    wanted: Wanted[Asked],
    bounds: Bounds,
    *,
    makes_rest: bool,
) -> Examined:
    data = open_records(records, header, bounds=bounds)
    body = records
    if settings.opens_batches:
        _check(data, header, settings, bounds)
        codec = settings.compression
        if codec is not None and codec is not header.compression:
            body = _recompress(data, header, codec)
            header = batches.read_header(body)
            if len(body) > settings.message_bytes_max:
                raise too_large(body, settings)
    if not settings.allows_delay:
        return Examined(body, None)
    opened = sifted(body, header, wanted, bounds=bounds, data=data)
    return Examined(body, Waits.of(opened, makes_rest=makes_rest) if opened.indexes else None)


def _check(data: Plain, header: BatchHeader, settings: TopicSettings, bounds: Bounds) -> None:
    """Check every record; the error names every bad one."""
    bad: list[tuple[int, str]] = []
    base, needs_keys = header.base_offset, settings.needs_keys
    for index, record in enumerate(walk_records(data, header, bounds=bounds, whole_max=0)):
        if record.offset - base != index:
            reason = f"Offset is {record.offset}, expected {index}."
        elif needs_keys and record.key is None:
            reason = "Compacted topics require records to have a key."
        else:
            continue
        if len(bad) < BAD_MAX:
            bad.append((index, reason))
    if bad:
        raise MalformedBatch(bad[0][1], index=bad[0][0], bad=bad)


def _recompress(data: Plain, header: BatchHeader, codec: Compression) -> bytearray:
    """Return the batch with its records recompressed, or uncompressed."""
    payload = memoryview(data) if codec is Compression.NONE else memoryview(compress(data, codec))
    size = batches.HEADER_SIZE + len(payload)
    out = bytearray(size)
    changed = header._replace(
        length=size - batches.PREFIX_SIZE,
        attributes=header.attributes & ~batches.COMPRESSION_MASK | codec,
    )
    batches.HEADER.pack_into(out, 0, *changed)
    out[batches.HEADER_SIZE :] = payload
    batches.seal(out)
    return out
