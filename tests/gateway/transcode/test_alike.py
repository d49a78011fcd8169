"""Messages that are alike: read in columns, they are the records that they are one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.kafka.world import KafkaWorld
from tests.world import NOW_MS

from rockgate.gateway.transcode.batches import BatchTranscoder
from rockgate.protocol.entry import BORN_HOST_V6, COMPRESSED, MOVED
from rockgate.store.log.commitlog import NO_HOST, Draft
from rockgate.store.queues.queueindex import Unit
from rockgate.store.read.alike import ALIKE_MIN
from rockgate.store.read.slices import Alike

ALL = 1 << 62
SIZE_MAX = 1 << 20
ID = b"7F0000010A5C18B4AAC2116BB6A8%04d"
USUAL = b"UNIQ_KEY\x01%b\x02WAIT\x01true\x02"


class Filled:
    """A queue with messages of a producer, and those of another queue in between."""

    def __init__(self) -> None:
        self.world = KafkaWorld()
        self.world.topic("orders", partitions=2)
        self.reader = self.world.store.reader
        self.queue = self.world.queue()

    def add(
        self,
        count: int = ALIKE_MIN,
        *,
        body: bytes = b"body",
        properties: bytes = USUAL,
        sys_flag: int = 0,
        born_ms: int = NOW_MS,
        is_mixed: bool = False,
    ) -> None:
        host = bytes(20) if sys_flag & BORN_HOST_V6 else NO_HOST
        for _ in range(count):
            number = self.queue.next_offset
            packed = properties.replace(b"%b", ID % number)
            draft = Draft(b"", 0, 0, body, packed, 0, born_ms + number, host, 0, sys_flag)
            self.world.store.appender.message(self.queue, draft)
            if is_mixed:
                self.world.store.appender.message(self.world.queue(partition=1), draft)

    def alike(self, offset: int = 0, end: int = ALL, size_max: int = SIZE_MAX) -> Alike | None:
        return self.reader.alike(self.queue, offset, end, size_max, may_be_cold=False)

    def batch(self, offset: int = 0, end: int = ALL, size_max: int = SIZE_MAX) -> bytearray:
        run = self.reader.messages(self.queue, offset, end, size_max, at_least_one=True, cold=None)
        batch, count = BatchTranscoder().batch(self.queue, run, 3)
        assert count == len(run)
        return batch


@pytest.fixture
def filled() -> Filled:
    return Filled()


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize(
    "properties",
    [
        USUAL,
        USUAL.replace(b"%b", b"00FD0000" * 3 + b"%b"),
        b"KEYS\x01k\x02UNIQ_KEY\x01%b\x02",
        b"a\x01\xff\x02UNIQ_KEY\x01%b\x02",
    ],
)
def test_a_producers_messages_are_read_in_columns(
    filled: Filled, properties: bytes, is_mixed: bool
) -> None:
    filled.add(200, properties=properties, is_mixed=is_mixed)
    run = filled.alike(3)
    assert run is not None
    assert (run.first.base, run.last.base) == (3, 199)
    assert BatchTranscoder().alike(run, 3) == filled.batch(3)


def test_they_end_where_a_reader_may_not_see_on(filled: Filled) -> None:
    filled.add(30)
    run = filled.alike(0, 20)
    assert run is not None and run.offsets == tuple(range(20))
    assert filled.alike(0, ALIKE_MIN - 1) is None


def test_they_end_where_a_reader_wants_no_more(filled: Filled) -> None:
    filled.add(30)
    unit = filled.queue.find(0)
    assert unit is not None
    run = filled.alike(0, size_max=unit.size * 10 + 1)
    assert run is not None and len(run.bodies) == 10
    assert filled.alike(0, size_max=unit.size * (ALIKE_MIN - 1)) is None


@pytest.mark.parametrize(
    "last",
    [
        {"body": b"larger than those"},
        {"body": b"bodyx", "properties": USUAL[:-2] + b"\x02"},
        {"sys_flag": COMPRESSED},
        {"sys_flag": MOVED},
        {"sys_flag": BORN_HOST_V6, "body": b""},
    ],
)
def test_one_that_is_not_alike_leaves_all_to_the_other_way(
    filled: Filled, last: dict[str, object]
) -> None:
    filled.add()
    filled.add(1, **last)  # type: ignore[arg-type]  # as add has them
    assert filled.alike() is None


@pytest.mark.parametrize(
    "properties",
    [
        b"",
        b"WAIT\x01true\x02",
        b"__KAFKA_NULL\x011\x02UNIQ_KEY\x01%b\x02",
        b"KEYS\x01%b\x02WAIT\x01true\x02",
        b"xUNIQ_KEY\x01%b\x02",
    ],
)
def test_properties_without_an_id_where_it_belongs_do_so_too(
    filled: Filled, properties: bytes
) -> None:
    filled.add(properties=properties)
    run = filled.alike()
    assert run is not None and BatchTranscoder().alike(run, 3) is None


def test_few_messages_are_not_worth_it(filled: Filled) -> None:
    filled.add(ALIKE_MIN - 1)
    assert filled.alike() is None


def test_what_may_be_cold_is_left_alone(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.add()
    monkeypatch.setattr(filled.reader._residency, "resident_from", lambda end: end)
    for may_be_cold in (True, False):
        run = filled.reader.alike(filled.queue, 0, ALL, SIZE_MAX, may_be_cold=may_be_cold)
        assert (run is None) is may_be_cold


def test_an_index_that_leads_astray_is_not_followed(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.add(20, is_mixed=True)
    units = [Unit._make(unit) for unit in filled.queue.walk(0)]
    for wrong in (
        units[5]._replace(position=units[5].position + units[5].size),
        units[5]._replace(position=units[5].position + 1),
        units[5]._replace(position=units[6].position),
        units[5]._replace(position=1 << 40),
        units[5]._replace(base=77),
    ):
        astray = [*units[:5], wrong, *units[6:]]
        monkeypatch.setattr(
            type(filled.queue), "walk", lambda queue, offset, astray=astray: iter(astray)
        )
        assert filled.alike() is None


pieces = st.sampled_from(
    [b"UNIQ_KEY\x01%b\x02", b"WAIT\x01true\x02", b"KEYS\x01a b\x02", b"__KAFKA_NULL\x011\x02", b"x"]
)


@given(
    st.lists(pieces, max_size=4).map(b"".join),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 40)), min_size=8, max_size=12),
    st.sampled_from([0, 1, 20_000]),
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_whatever_is_read_in_columns_is_the_same_batch(
    properties: bytes, sent: Sequence[tuple[int, int]], size: int
) -> None:
    filled = Filled()
    transcoding = BatchTranscoder()
    for flip, born_ms in sent:
        packed = properties if flip else properties.replace(b"WAIT", b"wait")
        filled.add(1, body=bytes(size), properties=packed, born_ms=born_ms)
    run = filled.alike()
    found = None if run is None else transcoding.alike(run, 3)
    assert found is None or found == filled.batch()
