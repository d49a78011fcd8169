from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.gateway.kafka.world import KafkaWorld
from tests.gateway.transcode.decoding import pulled
from tests.store.reading import entries
from tests.world import CONFIG

from rockgate.gateway.transcode.address import pack_address
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.entry import INDEXED
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.bounds import LIGHT
from rockgate.store.read.slices import Slice

KEYED = replace(CONFIG, key_index=True, key_index_slots=50, key_index_entries=500)


@pytest.fixture
def world() -> KafkaWorld:
    world = KafkaWorld(KEYED)
    world.topic()
    return world


def lookup(world: KafkaWorld) -> MessageLookup:
    transcoder = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24)
    return MessageLookup(world.store.lookup, world.store.reader.high_watermark, transcoder)


def test_every_address_that_a_pull_gives_leads_to_its_message(world: KafkaWorld) -> None:
    world.message(body=b"one")
    world.append(times=[1, 2, 3])
    world.message(body=b"two")
    finding = lookup(world)
    transcoder = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24)
    for found in entries(world.store, world.queue(), 0, 1 << 30):
        if found.unit.offset_count == 1:
            messages = [found.entry]
        else:
            cut = transcoder.select(found, found.unit.base, count_max=9, size_max=1 << 30)
            assert cut is not None
            messages = cut.buffers
        for message in pulled(messages):
            resolved = finding.message(message.entry.position)
            assert resolved is not None
            [same] = pulled([resolved.message])
            assert resolved.offset == same.offset == message.offset
            assert same.entry.position == message.entry.position
            assert same[1:] == message[1:]


def test_an_address_that_was_never_given_finds_nothing(world: KafkaWorld) -> None:
    single = world.message().position
    batch = world.append(times=[1, 2]).position
    finding = lookup(world)
    for address in (
        pack_address(single, 0),
        pack_address(batch),
        pack_address(batch, 2),
        pack_address(batch + 1, 0),
        pack_address(batch, 1 << 30),
        world.store.log.end,
        -1,
    ):
        assert finding.message(address) is None


def test_a_deleted_record_of_a_batch_is_not_found(world: KafkaWorld) -> None:
    batch = world.append(times=[1, 2, 3]).position
    world.delete_records(1)
    found = [lookup(world).message(pack_address(batch, index)) for index in range(3)]
    assert [each.offset if each else None for each in found] == [None, 1, 2]


def test_a_heavy_batch_is_noted_and_not_opened(world: KafkaWorld) -> None:
    value = random.Random(1).randbytes(LIGHT.compressed_bytes_max + 1)
    batch = world.append(times=[1], value=value, compression=Compression.SNAPPY).position
    heavy: list[Slice] = []
    finding = lookup(world)
    assert finding.message(pack_address(batch, 0), heavy) is None
    assert [found.unit.position for found in heavy] == [batch]
    assert finding.message(pack_address(batch, 0)) is not None


async def test_records_are_found_by_key_beside_messages_the_newest_first(world: KafkaWorld) -> None:
    world.message(properties={"KEYS": "key other"})
    world.append(times=[1, 2], sys_flag=INDEXED)
    world.append(times=[1, 2])
    world.message(properties={"KEYS": "key"})
    finding = lookup(world)

    async def offsets(limit: int) -> list[int]:
        return [found.offset for found in await finding.by_key(b"orders", b"key", limit=limit)]

    assert await offsets(9) == [5, 2, 1, 0]
    assert await offsets(2) == [5, 2]
    assert await finding.by_key(b"orders", b"nothing", limit=9) == []
    world.reopen()
    finding = lookup(world)
    assert await offsets(9) == [5, 2, 1, 0]
