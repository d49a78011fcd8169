"""Produce requests: decoding and encoding, their size, and the batches that are left."""

from __future__ import annotations

from typing import NamedTuple

from rockgate.gateway.kafka.request.handler import LARGE_SIZE, Answer, Large, memory_max
from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.hot import produce as hot
from rockgate.protocol.kafka.hot.produce import TOPIC_IDS, ProducedPartition, ProducedTopic
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.schema import decode as decode_declared

PIECE_COUNT = 100
"""Batches that are appended at once; further ones with other requests in between."""

Outcomes = list[list[ProducedPartition]]
"""The outcomes of the batches of a request, topic by topic."""
Rest = tuple[TopicProduceData, PartitionProduceData, list[ProducedPartition]]
"""A batch that is not yet appended, with its topic and the list for its outcome."""


class Produced(NamedTuple):
    """The outcome of a whole request."""

    topics: list[ProducedTopic]
    is_silent: bool = False
    """Whether the client requested no response."""


def encode(produced: Produced, version: int) -> Answer:
    """Encode a response by hand; none for acks=0."""
    return [] if produced.is_silent else hot.encode_response(version, produced.topics)


def decode(body: memoryview, version: int) -> ProduceRequest:
    """Decode a request by hand; Large if it is large and has many batches."""
    request = hot.walk_request(version, body)
    if request is None:
        if len(body) >= LARGE_SIZE:
            raise Large
        request = decode_large(body, version)
    return request


def decode_large(body: memoryview, version: int) -> ProduceRequest:
    """Decode a request of many batches."""
    return decode_declared(ProduceRequest, version, body, memory_max=memory_max(len(body)))


def is_large(request: ProduceRequest) -> bool:
    """Whether a request has more batches than are appended at once."""
    return sum([len(data.partition_data) for data in request.topic_data]) > PIECE_COUNT


def partition_of(
    data: TopicProduceData, each: PartitionProduceData, version: int
) -> tuple[str | bytes, int]:
    """Return the partition of a batch, as the client names it."""
    return data.topic_id if version >= TOPIC_IDS else data.name, each.index


def rest_of(request: ProduceRequest, outcomes: Outcomes) -> list[Rest]:
    """Return the batches without an outcome, and add a list per topic to `outcomes`."""
    done_count = sum(map(len, outcomes))
    outcomes += [[] for _ in request.topic_data[len(outcomes) :]]
    every = [
        (data, each, partitions)
        for data, partitions in zip(request.topic_data, outcomes, strict=True)
        for each in data.partition_data
    ]
    return every[done_count:]


def close_on_error(topics: list[ProducedTopic]) -> None:
    """Close the connection of a client that requested no response:

    it would not notice otherwise.
    """
    for topic in topics:
        for partition in topic.partitions:
            if partition.error_code:
                code = partition.error_code
                raise Disconnect(
                    f"Produce with acks=0 failed for {quoted(topic.name)}: error {code}"
                )
