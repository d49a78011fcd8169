"""Bytes from a peer that means harm, or from one that is broken.

Whatever they are: a value or a ProtocolError, at once, within four times their size plus 1 MiB.
"""

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from tests.budget import budget
from tests.protocol.kafka.samples import array_paths, crowded, sample
from tests.protocol.kafka.values import MESSAGES, VERSIONS, version_id
from tests.seeds import seeded

from rockgate.protocol.kafka.errors import MalformedMessage, ProtocolError
from rockgate.protocol.kafka.fields import uvarint
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsRequest
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rockgate.protocol.kafka.messages.offset_fetch import OffsetFetchRequest
from rockgate.protocol.kafka.messages.produce import ProduceRequest
from rockgate.protocol.kafka.schema import declaration_of, decode, encode
from rockgate.protocol.kafka.schema.reference import reference_decode

EVERY_VERSION = pytest.mark.parametrize(("message", "version"), VERSIONS, ids=version_id)
EVERY_MESSAGE = pytest.mark.parametrize("message", MESSAGES, ids=version_id)


def attempt(message: type[Any], version: int, body: bytes | memoryview) -> Any:
    """The value, or None if it was refused as it should be; anything else fails the test."""
    try:
        return decode(message, version, body)
    except ProtocolError:
        return None


@contextmanager
def memory_bound(size: int) -> Iterator[None]:
    """Fails if what runs inside takes more than four times `size` plus 1 MiB at any moment."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before <= 4 * size + (1 << 20)


@EVERY_VERSION
def test_a_body_cut_at_any_byte_is_refused_with_its_place(message: type[Any], version: int) -> None:
    body = encode(sample(message, version), version)
    for size in range(len(body)):
        with pytest.raises(MalformedMessage) as caught:
            decode(message, version, body[:size])
        refused = caught.value
        assert (refused.api, refused.version) == (message.__name__, version)


@EVERY_MESSAGE
def test_a_huge_length_or_count_at_any_byte_is_refused_within_the_memory(
    message: type[Any],
) -> None:
    versions = declaration_of(message).versions
    for version in {versions.min, versions.max}:
        body = encode(sample(message, version), version)
        attempt(message, version, body)
        with memory_bound(len(body)):
            for at in range(len(body)):
                for huge in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x80\0", b"\x7f\xff"):
                    attempt(message, version, body[:at] + huge + body[at + len(huge) :])
                    attempt(message, version, body[:at] + huge + body[at:])


@EVERY_MESSAGE
def test_a_mutated_body_is_taken_or_refused_as_construct_does(message: type[Any]) -> None:
    chance = seeded()
    for _ in range(budget("wire_mutations")):
        version = chance.choice(list(declaration_of(message).versions))
        body = bytearray(encode(sample(message, version), version))
        for _ in range(chance.randint(1, 3)):
            mutate(body, chance)
        found = attempt(message, version, bytes(body))
        try:
            expected = reference_decode(message, version, bytes(body))
        except ProtocolError:
            expected = None
        # By their text too, for a mutated float may be a NaN.
        agree = found == expected or repr(found) == repr(expected)
        assert agree, (version, bytes(body))


def mutate(body: bytearray, chance: Random) -> None:
    at = chance.randrange(len(body) + 1)
    match chance.randrange(4):
        case 0:
            body[at : at + 1] = bytes([chance.randrange(256)])
        case 1:
            body[at:at] = chance.randbytes(chance.randint(1, 5))
        case 2:
            del body[at : at + chance.randint(1, 5)]
        case _:
            body[at : at + 1] = chance.choice([b"\0", b"\1", b"\xff", b"\x80\x80\x01"])


@EVERY_MESSAGE
def test_a_crowd_of_the_smallest_elements_stays_within_the_memory(message: type[Any]) -> None:
    version = declaration_of(message).versions.max
    bodies = [
        encode(crowded(message, version, path, budget("wire_crowd")), version)
        for path in array_paths(message, version)
    ]
    # The densest first: they grow the most. Tracing is slow, so not all are tried every time.
    for body in sorted(bodies, key=len)[: budget("wire_crowds")]:
        # Once before, for decoders are made when they are first needed.
        attempt(message, version, body)
        with memory_bound(len(body)):
            attempt(message, version, memoryview(body))


@pytest.mark.parametrize(
    "request_of",
    [
        lambda count: FetchRequest(
            topics=[
                FetchTopic(
                    topic_id=index.to_bytes(16),
                    partitions=[
                        FetchPartition(fetch_offset=index << 20, partition_max_bytes=1 << 20)
                    ],
                )
                for index in range(count)
            ]
        ),
        lambda count: FetchRequest(
            topics=[
                FetchTopic(
                    partitions=[
                        FetchPartition(partition=index, fetch_offset=index << 20)
                        for index in range(count)
                    ]
                )
            ]
        ),
        lambda count: ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name=f"orders.of.shop.{index}", partitions=[ListOffsetsPartition(timestamp=-1)]
                )
                for index in range(count)
            ]
        ),
        lambda count: OffsetCommitRequest(
            topics=[
                OffsetCommitRequestTopic(
                    topic_id=index.to_bytes(16), partitions=[OffsetCommitRequestPartition()]
                )
                for index in range(count)
            ]
        ),
        lambda count: MetadataRequest(
            topics=[MetadataRequestTopic(name=f"orders.of.shop.{index}") for index in range(count)]
        ),
    ],
    ids=["Fetch topics", "Fetch partitions", "ListOffsets", "OffsetCommit", "Metadata"],
)
def test_an_honest_request_for_ten_thousand_of_them_fits_into_the_memory(
    request_of: Callable[[int], Any],
) -> None:
    request = request_of(10_000)
    version = declaration_of(type(request)).versions.max
    body = encode(request, version)
    attempt(type(request), version, body)
    with memory_bound(len(body)):
        found = decode(type(request), version, memoryview(body))
    assert found == request


@pytest.mark.parametrize("version", [1, 12])
def test_more_than_a_million_elements_are_refused_before_anything_is_made(version: int) -> None:
    count = 1_000_001
    lead = struct.pack(">i", count) if version == 1 else uvarint(count + 1)
    body = lead + bytes(4 * count)
    attempt(MetadataRequest, version, body[:10])
    tracemalloc.start()
    with pytest.raises(
        MalformedMessage, match="1,000,001 elements exceed the maximum of 1,000,000"
    ):
        decode(MetadataRequest, version, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_a_million_elements_in_a_few_bytes_are_refused_before_anything_is_made() -> None:
    body = struct.pack(">i", 1_000_000) + bytes(100)
    with (
        memory_bound(0),
        pytest.raises(MalformedMessage, match="1,000,000 elements cannot fit in 100 bytes"),
    ):
        decode(MetadataRequest, 1, body)


def test_text_that_is_wide_in_memory_counts_by_what_it_takes() -> None:
    topics = [MetadataRequestTopic(name="a" * 200 + "\U0001f600") for _ in range(20_000)]
    body = encode(MetadataRequest(topics=topics), 12)
    attempt(MetadataRequest, 12, body[:10])
    with memory_bound(len(body)):
        assert attempt(MetadataRequest, 12, body) is None


def test_ten_thousand_tagged_fields_are_stepped_over_and_one_more_is_refused() -> None:
    plain = encode(ApiVersionsRequest(), 3)
    for count, taken in ((10_000, True), (10_001, False)):
        tags = uvarint(count) + b"".join(uvarint(tag) + b"\0" for tag in range(count))
        body = plain[:-1] + tags
        assert (attempt(ApiVersionsRequest, 3, body) is not None) is taken


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"\x01\x05\x7f", "length 127 exceeds the 0 bytes left"),
        (b"\x01\x05\xff\xff\xff\xff\x0f", "length 4,294,967,295 exceeds the 0 bytes left"),
        (b"\x01\xff\xff\xff\xff\xff\x01\0", "varint over 5 bytes"),
        (b"\xff\xff\xff\xff\x0f", "4,294,967,295 tagged fields exceed the maximum of 10,000"),
        (b"\x02\x05\0", "message is truncated at 5 bytes"),
    ],
)
def test_a_tagged_field_that_lies_about_itself_is_refused(tags: bytes, reason: str) -> None:
    plain = encode(ApiVersionsRequest(), 3)
    with pytest.raises(MalformedMessage, match=reason):
        decode(ApiVersionsRequest, 3, plain[:-1] + tags)


def test_a_length_below_null_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="transactional_id: invalid length -2"):
        decode(ProduceRequest, 3, b"\xff\xfe" + bytes(10))
    with pytest.raises(MalformedMessage, match="topics: invalid length -2"):
        decode(OffsetFetchRequest, 2, b"\0\0\xff\xff\xff\xfe")


def test_a_null_that_the_version_does_not_have_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="topics: null is not allowed"):
        decode(OffsetFetchRequest, 1, b"\0\0\xff\xff\xff\xff")
    assert decode(OffsetFetchRequest, 2, b"\0\0\xff\xff\xff\xff").topics is None


def test_text_over_32767_bytes_is_refused_in_the_flexible_form_too() -> None:
    body = uvarint(0x8001) + b"x" * 0x8000 + b"\x01\0"
    with pytest.raises(MalformedMessage, match="length 32,768 exceeds the maximum of 32,767"):
        decode(ApiVersionsRequest, 3, body)
