"""Transaction markers: the control batch that ends a transaction in one partition.

    key    version 2 (0) | type 2 (0 abort, 1 commit)
    value  version 2 (0) | coordinator epoch 4

A marker is a batch of one record with the control and the transactional bit, the producer's id and
epoch, and no sequence. Consumers skip it by its offset and never return it.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import Buffer, read_header
from rockgate.protocol.kafka.records.bounds import Bounds
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0
MARKER_SIZE_MAX: Final = 1024
"""What a marker may decompress to; ours and Kafka's are never compressed."""
_BOUNDS: Final = Bounds(
    inflated_bytes_max=MARKER_SIZE_MAX, records_max=100, record_headers_max=100, headers_max=100
)


class MarkerType(IntEnum):
    """How the transaction ended."""

    ABORT = 0
    COMMIT = 1


class Marker(NamedTuple):
    """The end of one producer's transaction."""

    type: MarkerType
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def build_marker(marker: Marker, *, timestamp: int, base_offset: int = 0) -> bytearray:
    """The control batch of `marker`."""
    record = Record(
        offset=base_offset,
        timestamp=timestamp,
        key=_KEY.pack(_VERSION, marker.type),
        value=_VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_marker(view: Buffer) -> Marker | None:
    """The marker in the batch that fills `view`; None for a control record of another type.

    Later versions may add fields, so only the beginning of key and value is read.
    """
    header = read_header(view)
    if not header.is_control:
        raise MalformedBatch("Not a control batch.")
    records = read_records(view, bounds=_BOUNDS)
    if len(records) != 1:
        raise MalformedBatch(f"Control batch has {len(records)} records, not 1.")
    key, value = records[0].key, records[0].value
    if key is None or len(key) < _KEY.size:
        raise MalformedBatch("Control record has an invalid key.", index=0)
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise MalformedBatch(f"Unsupported control key version {version}.", index=0)
    if kind not in (MarkerType.ABORT, MarkerType.COMMIT):
        return None
    if value is None or len(value) < _VALUE.size:
        raise MalformedBatch("Not an end-of-transaction marker.", index=0)
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise MalformedBatch(f"Unsupported control value version {version}.", index=0)
    return Marker(MarkerType(kind), header.producer_id, header.producer_epoch, coordinator_epoch)
