"""Produce requests as they are read, and whether there is much to them."""

from __future__ import annotations

from rockgate.gateway.kafka.request.handler import LARGE_SIZE, Large, memory_max
from rockgate.protocol.kafka.hot import produce as hot
from rockgate.protocol.kafka.messages.produce import ProduceRequest
from rockgate.protocol.kafka.schema import decode as decode_declared

PIECE_COUNT = 100
"""Batches that are appended at once; more of them with other requests in between."""


def decode(body: memoryview, version: int) -> ProduceRequest:
    """Read a request by hand; Large if it is large and not of a few batches."""
    request = hot.walk_request(version, body)
    if request is None:
        if len(body) >= LARGE_SIZE:
            raise Large
        request = decode_large(body, version)
    return request


def decode_large(body: memoryview, version: int) -> ProduceRequest:
    """Read a request of many batches."""
    return decode_declared(ProduceRequest, version, body, memory_max=memory_max(len(body)))


def is_large(request: ProduceRequest) -> bool:
    """Whether a request has more batches than are appended at once."""
    return sum([len(data.partition_data) for data in request.topic_data]) > PIECE_COUNT
