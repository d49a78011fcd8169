"""Records of Kafka clients that wait for their time: RocketMQ's clients see them when they come."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.gateway.kafka.delayed import Given, Postponing, delayed, plain
from tests.gateway.transcode.decoding import Pulled, pulled
from tests.store.reading import entries
from tests.world import CONFIG

from rockgate.gateway.remoting.messages.puller import Pulled as Answer
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING, Filter, filter_of
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.transcode.address import pack_address
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.remoting.codes import ResponseCode

KEYED = replace(CONFIG, key_index=True, key_index_slots=50, key_index_entries=5_000)


class Both(Postponing):
    """Kafka's clients write, RocketMQ's read."""

    def open(self) -> None:
        super().open()
        self.transcoder = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24)
        self.puller = Puller(
            reader=self.store.reader,
            cold_reads=ColdReads(self.store.residency, self.store.log),
            stable_offsets=self.folds.stable_offsets,
            transcoder=self.transcoder,
        )
        self.lookup = MessageLookup(
            self.store.lookup, self.store.reader.high_watermark, self.transcoder
        )

    def answer(self, offset: int, wanted: Filter = EVERYTHING) -> Answer:
        async def ask() -> Answer:
            found = self.puller.pull(self.queue(), offset, wanted, 32, 1 << 20)
            return found if isinstance(found, Answer) else await found

        return asyncio.run(ask())

    def pulled(self, wanted: Filter = EVERYTHING) -> list[Pulled]:
        """Everything there is, as a client pulls it: each answer brings it forward."""
        found: list[Pulled] = []
        offset, end = 0, self.queue().next_offset
        while offset < end:
            answer = self.answer(offset, wanted)
            assert answer.next_offset > offset
            found += pulled(bytes(each) for each in answer.buffers)
            offset = answer.next_offset
        return found


@pytest.fixture
def world() -> Both:
    world = Both(KEYED)
    world.mixed(message_index="true")
    return world


def tagged(given: Given, tag: str) -> Given:
    return given[0], given[1] | {"TAGS": tag}


@pytest.mark.parametrize("codec", list(Compression))
def test_a_delayed_record_is_no_message_until_it_comes(world: Both, codec: Compression) -> None:
    world.put(delayed(b"0", 1_000), plain(b"1"), delayed(b"2", 2_000), plain(b"3"), codec=codec)
    world.put(delayed(b"4", 2_000), codec=codec)
    assert [(each.offset, each.body) for each in world.pulled()] == [(1, b"1"), (3, b"3")]
    world.pass_time(2_000)
    found = world.pulled()
    assert [each.body for each in found] == [b"1", b"3", b"0", b"2", b"4"]
    assert [each.offset for each in found] == [1, 3, 5, 6, 7]
    assert all(b"DELAY" not in each.properties for each in found)


def test_a_queue_of_nothing_but_waiting_records_is_stepped_over(world: Both) -> None:
    for _ in range(100):
        world.put(delayed(b"x", 86_400_000))
    assert world.pulled() == []
    assert world.answer(100).code == ResponseCode.PULL_NOT_FOUND


@pytest.mark.parametrize(
    ("kind", "expression"), [("TAG", "red || green"), ("SQL92", "TAGS IN ('red', 'green')")]
)
def test_filters_meet_what_is_there(world: Both, kind: str, expression: str) -> None:
    world.put(
        tagged(delayed(b"0", 1_000), "red"),
        tagged(plain(b"1"), "red"),
        tagged(plain(b"2"), "blue"),
        tagged(delayed(b"3", 1_000), "blue"),
    )
    wanted = filter_of(kind, expression)
    assert [each.body for each in world.pulled(wanted)] == [b"1"]
    world.pass_time(1_000)
    assert [each.body for each in world.pulled(wanted)] == [b"1", b"0"]


async def test_a_waiting_record_is_found_neither_by_its_address_nor_by_its_key(world: Both) -> None:
    world.put(plain(b"0"), delayed(b"1", 1_000))
    unit = world.queue().find(0)
    assert unit is not None
    assert world.lookup.message(pack_address(unit.position, 0)) is not None
    assert world.lookup.message(pack_address(unit.position, 1)) is None
    assert [each.offset for each in await world.lookup.by_key(b"orders", b"key", limit=9)] == [0]
    world.pass_time(1_000)
    assert [each.offset for each in await world.lookup.by_key(b"orders", b"key", limit=9)] == [2, 0]


def test_a_large_batch_is_opened_by_a_thread(world: Both) -> None:
    given = [delayed(b"d", 1_000) if n % 3 else plain(b"%d" % n) for n in range(3_000)]

    async def scenario() -> None:
        await world.produce_later(world.batch(given))

    asyncio.run(scenario())
    heavy: list[object] = []
    [found] = entries(world.store, world.queue(), 0, 1 << 20)
    assert (
        world.transcoder.select(found, 0, count_max=9, size_max=1 << 20, heavy=heavy) is None  # type: ignore[arg-type]
    )
    assert [each.body for each in world.pulled()] == [b"%d" % n for n in range(0, 3_000, 3)]
