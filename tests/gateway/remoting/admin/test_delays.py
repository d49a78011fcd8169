"""A scan of delayed messages: it is complete, and no turn of the loop takes more than its share."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.world import World

from rockgate.gateway.remoting.admin.delays import (
    LOOKED_PER_TURN,
    UNITS_PER_TURN,
    DelayAdmin,
)
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol.entry import pack_properties
from rockgate.protocol.remoting.headers.admin import ScanDelaysHeader
from rockgate.protocol.remoting.properties import REAL_TOPIC
from rockgate.protocol.remoting.system_topics import TIMES_TOPIC
from rockgate.store.log.commitlog import Draft
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

COUNT = 2_300


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    store = World().store
    topic = store.topics.create(NewTopic(name=TIMES_TOPIC, queue_count=1, is_internal=True))
    queue = store.queue(topic, 0)
    now_ms = store.deliveries.now_ms()
    for number in range(COUNT):
        properties = pack_properties(((REAL_TOPIC, f"topic-{number % 2}"),))
        draft = Draft(b"", 0, 0, b"body", properties)
        store.deliveries.append(queue, draft, [(0, now_ms + 60_000 + number)])
    yield store
    store.close()


class Turns:
    """Counts what is done in each turn of the loop."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.units: Counter[int] = Counter()
        self.entries: Counter[int] = Counter()
        self.number = 0
        part, entry = store.delay.part, store.reader.entry

        def counted_part(start: int, count: int, offset: int = -1) -> Any:
            self.units[self.number] += count
            return part(start, count, offset)

        def counted_entry(*words: Any) -> Any:
            self.entries[self.number] += 1
            return entry(*words)

        monkeypatch.setattr(store.delay, "part", counted_part)
        monkeypatch.setattr(store.reader, "entry", counted_entry)

    async def during(self, work: Any) -> Any:
        """Do it, and count the turns meanwhile."""
        loop = asyncio.get_running_loop()
        handles: list[asyncio.Handle] = []

        def turn() -> None:
            self.number += 1
            handles[:] = [loop.call_soon(turn)]

        turn()
        try:
            return await work
        finally:
            handles[0].cancel()


def admin(store: Store) -> DelayAdmin:
    return DelayAdmin(
        topics=store.topics,
        queues=store.queues,
        reader=store.reader,
        lookup=store.lookup,
        schedule=store.delay,
        deliveries=store.deliveries,
        early=store.early_deliveries,
        cold_reads=ColdReads(store.residency, store.log),
    )


def asked(**words: Any) -> ScanDelaysHeader:
    return ScanDelaysHeader(limit=1_000, **words)


def test_a_turn_looks_at_so_many_units(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(store, monkeypatch)
    found = asyncio.run(turns.during(admin(store).scan(asked())))
    assert sum(sum(each.due) for each in found.counts) == COUNT
    assert len(found.soonest) == 1_000
    assert max(turns.units.values()) <= UNITS_PER_TURN
    assert len(turns.units) >= COUNT // UNITS_PER_TURN
    assert not turns.entries


def test_a_turn_reads_so_many_messages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(store, monkeypatch)
    found = asyncio.run(turns.during(admin(store).scan(asked(by_target=True))))
    told = {each.target: sum(each.due) for each in found.counts}
    assert told == {"topic-0": COUNT // 2, "topic-1": COUNT // 2}
    assert max(turns.units.values()) <= LOOKED_PER_TURN
    assert max(turns.entries.values()) <= LOOKED_PER_TURN
    assert sum(turns.entries.values()) == COUNT


def test_the_time_of_one_message_is_looked_for_in_turns(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(store, monkeypatch)
    id_ = f"{TIMES_TOPIC}/0/{COUNT - 1}"
    found = asyncio.run(turns.during(admin(store).describe(id_)))
    assert found.due_ms == store.deliveries.now_ms() + 60_000 + COUNT - 1
    assert max(turns.units.values()) <= 4 * UNITS_PER_TURN
    assert len(turns.units) == 2
