"""The 61-byte header of a record batch (magic 2): read, check, stamp in place.

    byte  0  base offset        8      not covered by the CRC: the log stamps it
          8  length             4      of everything after this field
         12  leader epoch       4      not covered by the CRC: the log stamps it
         16  magic              1      2
         17  CRC-32C            4      of everything from byte 21 to the end
         21  attributes         2      0-2 compression, 3 timestamp type, 4 transactional, 5 control
         23  last offset delta  4
         27  base timestamp     8
         35  max timestamp      8
         43  producer id        8
         51  producer epoch     2
         53  base sequence      4
         57  record count       4
         61  records, compressed together if the attributes say so

This module never decodes the records: a batch passes through the server by its header alone. It
works on memoryviews and copies nothing.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple, NoReturn, TypeAlias

from crc32c import crc32c

from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch

Buffer: TypeAlias = bytes | bytearray | memoryview
WritableBuffer: TypeAlias = bytearray | memoryview

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
MAGIC: Final = 2
PREFIX_SIZE: Final = 12
"""Base offset and length, which the length field does not include."""
CRC_START: Final = 21
"""The first byte that the CRC covers."""
RECORD_SIZE_MIN: Final = 7
"""The smallest record: length, attributes, two deltas, null key, null value, no headers."""
PRODUCE_ZSTD_VERSION: Final = 7
"""The first Produce version whose clients may send zstd (KIP-110)."""

_LENGTH_MIN: Final = 14
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_LENGTH: Final = struct.Struct(">i")
_STAMP: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")

_new_tuple: Final = tuple.__new__

COMPRESSION_MASK: Final = 0x07
_LOG_APPEND_TIME_BIT: Final = 0x08
_TRANSACTIONAL_BIT: Final = 0x10
_CONTROL_BIT: Final = 0x20
_DELETE_HORIZON_BIT: Final = 0x40


class Compression(IntEnum):
    """How the records of a batch are compressed: the three low bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Whose clock the timestamps come from."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """The header's fields in wire order. A tuple, because one is made for every batch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return PREFIX_SIZE + self.length

    @property
    def last_offset(self) -> int:
        """The offset of the last record, even if it was compacted away."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences start again at 0 after 2**31 - 1."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> Compression:
        """The codec of the records; an unknown id is a MalformedBatch."""
        return compression_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """CREATE_TIME unless the broker replaced the producer's timestamps."""
        return TimestampType((self.attributes & _LOG_APPEND_TIME_BIT) >> 3)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a transaction marker and no data."""
        return bool(self.attributes & _CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp is the delete horizon that compaction set."""
        return bool(self.attributes & _DELETE_HORIZON_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on records that delete their key may be dropped; None if that is not set."""
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote the batch."""
        return self.producer_id >= 0


def compression_of(attributes: int) -> Compression:
    """The codec that `attributes` names; an unknown id is a MalformedBatch."""
    codec = attributes & COMPRESSION_MASK
    if codec > Compression.ZSTD:
        raise MalformedBatch(
            f"Unknown compression type {codec}.", code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    return Compression(codec)


def attributes_of(
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    *,
    is_transactional: bool = False,
    is_control: bool = False,
) -> int:
    """The attributes field with these values."""
    return (
        compression
        | timestamp_type << 3
        | (_TRANSACTIONAL_BIT if is_transactional else 0)
        | (_CONTROL_BIT if is_control else 0)
    )


def read_header(view: Buffer, at: int = 0) -> BatchHeader:
    """The header at byte `at`; only its size is checked."""
    try:
        return _new_tuple(BatchHeader, HEADER.unpack_from(view, at))
    except struct.error:
        raise _no_room(len(view) - at) from None


def is_transactional(view: Buffer) -> bool:
    """Whether a batch is part of a transaction; not, if it is too short to tell."""
    if len(view) < HEADER_SIZE:
        return False
    return bool(_ATTRIBUTES.unpack_from(view, _ATTRIBUTES_AT)[0] & _TRANSACTIONAL_BIT)


def check(view: Buffer) -> BatchHeader:
    """The header of a valid batch that fills `view` exactly, or a MalformedBatch.

    Valid means magic 2, the length it declares, plausible counts, and a matching CRC. Compaction
    may have removed records, so the count may be smaller than the range of offsets.
    """
    try:
        fields = HEADER.unpack_from(view)
    except struct.error:
        raise _no_room(len(view)) from None
    header = _new_tuple(BatchHeader, fields)
    _, length, _, magic, crc, attributes, last_offset_delta, _, _, _, _, _, count = fields
    size = len(view)
    if magic != MAGIC:
        raise MalformedBatch(f"Magic is {magic}, not {MAGIC}.")
    if length != size - PREFIX_SIZE:
        raise _corrupt(f"Batch length is {length}, but {size - PREFIX_SIZE} bytes follow.")
    if crc32c(view[CRC_START:]) != crc:
        raise _corrupt(
            f"CRC mismatch: stored {crc:#010x}, computed {crc32c(view[CRC_START:]):#010x}."
        )
    if last_offset_delta < 0 or not 0 <= count <= last_offset_delta + 1:
        raise MalformedBatch(f"{count} records with a last offset delta of {last_offset_delta}.")
    if not attributes & COMPRESSION_MASK and count * RECORD_SIZE_MIN > size - HEADER_SIZE:
        raise MalformedBatch(f"{count} records cannot fit in {size - HEADER_SIZE} bytes.")
    return header


def check_produced(records: Buffer | None, version: int) -> BatchHeader:
    """The header of what a producer sent for one partition in Produce `version` (3 or later).

    Raises MalformedBatch whose `code` is the answer for that partition. Kafka's rules: exactly one
    batch, of magic 2 (INVALID_RECORD); no zstd below v7 (UNSUPPORTED_COMPRESSION_TYPE); valid
    (CORRUPT_MESSAGE); offsets from 0 without gaps, no control records, a sequence if there is a
    producer id (INVALID_RECORD).

    Kafka also decodes the batch and compares its records with the header; this does not.
    """
    if records is None or len(records) < HEADER_SIZE:
        _refuse(b"" if records is None else records, version)
    fields = HEADER.unpack_from(records)
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        _,
        _,
        producer_id,
        _,
        base_sequence,
        count,
    ) = fields
    # One check for a valid batch; only an invalid one pays for finding the reason.
    if (
        magic == MAGIC
        and length == len(records) - PREFIX_SIZE
        and base_offset == 0
        and 0 < count == last_offset_delta + 1
        and attributes & _CONTROL_BIT == 0
        and attributes & COMPRESSION_MASK <= (4 if version >= PRODUCE_ZSTD_VERSION else 3)
        and (producer_id < 0 or base_sequence >= 0)
        and crc32c(records[CRC_START:]) == crc
    ):
        return _new_tuple(BatchHeader, fields)
    _refuse(records, version)


def _refuse(records: Buffer, version: int) -> NoReturn:
    """Return what is wrong with produced records, in the order of Kafka's checks.

    Two answers differ from Kafka's: it silently drops an incomplete tail after the batch, and has a
    separate error for an unknown codec.
    """
    size = _whole_size(records, 0)
    if size == 0:
        raise MalformedBatch("No complete record batch.")
    if records[_MAGIC_AT] != MAGIC:
        raise MalformedBatch(f"Magic is {records[_MAGIC_AT]}, not {MAGIC}.")
    codec = records[_ATTRIBUTES_AT + 1] & COMPRESSION_MASK
    if codec == Compression.ZSTD and version < PRODUCE_ZSTD_VERSION:
        raise MalformedBatch(
            f"zstd requires Produce v{PRODUCE_ZSTD_VERSION} or later, not v{version}.",
            code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )
    if _whole_size(records, size):
        raise MalformedBatch("More than one record batch.")
    header = read_header(records)
    if header.base_offset != 0:
        raise MalformedBatch(f"Base offset is {header.base_offset}, not 0.")
    check(memoryview(records)[:size])
    if size < len(records):
        raise MalformedBatch(f"{len(records) - size} bytes follow the record batch.")
    compression_of(header.attributes)
    if header.record_count != header.last_offset_delta + 1:
        raise MalformedBatch(
            f"{header.record_count} records with a last offset delta of {header.last_offset_delta}."
        )
    if header.is_control:
        raise MalformedBatch("Clients must not write control records.")
    raise MalformedBatch(
        f"Producer {header.producer_id} sent base sequence {header.base_sequence}."
    )


def _whole_size(view: Buffer, at: int) -> int:
    """The size of the batch at `at`, of any magic; 0 if there is none or it is cut off.

    A length below the oldest format's minimum or an unknown magic is corrupt.
    """
    left = len(view) - at
    if left < PREFIX_SIZE:
        return 0
    (length,) = _LENGTH.unpack_from(view, at + 8)
    if length < _LENGTH_MIN:
        raise _corrupt(f"Batch at byte {at} has length {length}.")
    if left <= _MAGIC_AT:
        return 0
    if view[at + _MAGIC_AT] > MAGIC:
        raise _corrupt(f"Batch at byte {at} has magic {view[at + _MAGIC_AT]}.")
    return PREFIX_SIZE + length if PREFIX_SIZE + length <= left else 0


def split(view: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Each complete batch of a fetched byte range with its header; CRCs are not checked.

    A broker may truncate the last batch at the fetch size, so an incomplete tail is not an error.
    """
    at, end = 0, len(view)
    while end - at > _MAGIC_AT:
        (length,) = _LENGTH.unpack_from(view, at + 8)
        if view[at + _MAGIC_AT] != MAGIC:
            raise MalformedBatch(
                f"Batch at byte {at} has magic {view[at + _MAGIC_AT]}, not {MAGIC}."
            )
        if length < HEADER_SIZE - PREFIX_SIZE:
            raise _corrupt(f"Batch at byte {at} has length {length}, shorter than a batch header.")
        following = at + PREFIX_SIZE + length
        if following > end:
            return
        yield read_header(view, at), view[at:following]
        at = following


def stamp(view: WritableBuffer, base_offset: int, leader_epoch: int) -> None:
    """Write the log's base offset and leader epoch into the batch that fills `view`.

    The CRC starts after both, so it does not change. A single pack call also rewrites the length
    between them, which `check` has verified.
    """
    _STAMP.pack_into(view, 0, base_offset, len(view) - PREFIX_SIZE, leader_epoch)


def stamp_append_time(view: WritableBuffer, append_time_ms: int) -> None:
    """Set LogAppendTime on the batch: every record then has this timestamp.

    Attributes and max timestamp change, so the CRC is recomputed. The records are not decoded:
    their own deltas are ignored once the bit is set.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(view, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(view, _ATTRIBUTES_AT, attributes | _LOG_APPEND_TIME_BIT)
    _TIMESTAMP.pack_into(view, _MAX_TIMESTAMP_AT, append_time_ms)
    seal(view)


def seal(view: WritableBuffer) -> None:
    """Recompute the CRC of the batch that fills `view`."""
    _CRC.pack_into(view, _CRC_AT, crc32c(memoryview(view)[CRC_START:]))


def _no_room(size: int) -> MalformedBatch:
    return _corrupt(f"A batch header is {HEADER_SIZE} bytes; only {size} are left.")


def _corrupt(reason: str) -> MalformedBatch:
    return MalformedBatch(reason, code=ErrorCode.CORRUPT_MESSAGE)
