"""The power is cut, or the process killed, at any write while Kafka clients delay records.

Batches are mixed, compressed, idempotent, sent again, of transactions that are committed, aborted
or left open, and some have more delayed records than are scheduled at once. Whatever is left: each
record whose batch was answered comes once, at once or when it is due; of a transaction all come or
none; and of a batch that was not answered all come or none, too.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.budget import budget
from tests.gateway.kafka.delayed import Given, Postponing, delayed, plain
from tests.seeds import seeded

from rockgate.gateway.kafka.produce import delay, delay_schedule, topic_checks
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreError
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

DAY_MS = 86_400_000
CONFIG = StoreConfig(
    segment_bytes=16_384,
    populate_ahead_bytes=4_096,
    checkpoint_bytes=6_000,
    checkpoint_interval_ms=3_000,
    upkeep_gap_ms=0,
    snapshot_bytes=9_000,
    snapshot_interval_ms=7_000,
    key_index=False,
    retention_interval_ms=1_000,
)


class Run:
    """One life of a server, from its start until it dies or is done."""

    def __init__(self, disk: MemoryDisk, seed: int) -> None:
        self.disk = disk
        self.random = Random(seed)
        self.sent: list[list[bytes]] = []
        """What was sent together: a batch, or all of a transaction."""
        self.promised: set[bytes] = set()
        """What was answered, and is on disk."""
        self.forbidden: set[bytes] = set()
        """What was aborted, with the abort acknowledged."""

    def go(self) -> None:
        try:
            self.world = world = Postponing(CONFIG, self.disk)
            world.mixed(retention_ms="60000")
            world.store.flush()
            self._work(world)
            world.store.close()
        except PowerCut:
            pass

    def _work(self, world: Postponing) -> None:
        producer, sequence = world.init("plain").producer, 0
        transactional = world.init("tx").producer
        for number in range(20):
            if self.random.random() < 0.4:
                transactional = self._transact(world, transactional, number)
            else:
                given = self._given(number)
                batch = world.batch(
                    given, codec=self._codec(), producer=producer, sequence=sequence
                )
                sequence += len(given)
                for _ in range(self.random.choice((1, 1, 2))):
                    assert world.produce(batch).error_code == 0
                self._keep(world, [value for value, _ in given])
            world.pass_time(self.random.choice((0, 300, 2_000)))

    def _transact(
        self, world: Postponing, producer: ProducerIdAndEpoch, number: int
    ) -> ProducerIdAndEpoch:
        values: list[bytes] = []
        self.sent.append(values)
        sequence = 0
        for part in range(self.random.choice((1, 2))):
            given = self._given(number * 10 + part + 1_000, is_noted=False)
            values += [value for value, _ in given]
            batch = world.batch(
                given,
                codec=self._codec(),
                producer=producer,
                sequence=sequence,
                is_transactional=True,
            )
            sequence += len(given)
            assert world.produce(batch, id_="tx").error_code == 0
            world.pass_time(self.random.choice((0, 500)))
        is_commit = self.random.random() < 0.6
        if not is_commit:
            # Not a promise: whatever happens, none of these is to come.
            self.forbidden.update(values)
        ended = world.end(producer, commit=is_commit)
        assert ended.code == 0
        if is_commit:
            self._keep(world, values)
        return ended.producer

    def _given(self, number: int, *, is_noted: bool = True) -> list[Given]:
        """Some records, each with a value of its own."""
        given = []
        for at in range(self.random.randint(1, 5)):
            value = b"%d.%d" % (number, at)
            if self.random.random() < 0.6:
                ms = self.random.choice((-5, 0, 700, 3_000, DAY_MS))
                given.append(delayed(value, ms))
            else:
                given.append(plain(value))
        if is_noted:
            self.sent.append([value for value, _ in given])
        return given

    def _codec(self) -> Compression:
        return self.random.choice(list(Compression))

    def _keep(self, world: Postponing, values: list[bytes]) -> None:
        world.store.flush()
        self.promised.update(values)


def check(world: Postponing, run: Run) -> None:
    world.init("tx")  # what is still open is aborted, as its next producer would do
    seen: Counter[bytes] = Counter()
    behind = 0
    for step in (0, 5_000, DAY_MS, DAY_MS):
        world.pass_time(step)
        # Before retention takes what has expired: what was read once is not read again.
        queue = world.queue()
        for batch in world.shown(start=behind, committed=True):
            behind = batch.next_offset
            if batch.records:
                seen.update(values_of(world, batch.first, batch.records))
        if step == 5_000:
            world.kill()
        assert queue.log_start <= behind
    assert world.waiting_count == 0
    assert len(world.folds.held) == 0
    assert max(seen.values(), default=1) == 1, "something came twice"
    assert run.promised <= seen.keys(), "something is lost"
    assert not run.forbidden & seen.keys(), "something came although it was aborted"
    for values in run.sent:
        there = [value in seen for value in values]
        assert all(there) or not any(there), f"{values} is torn"


def values_of(world: Postponing, first: int, records: list[Record]) -> list[bytes]:
    """The values of a batch, unless its transaction was aborted."""
    topic = world.store.topics.get("orders")
    found = world.folds.stable_offsets.aborted(topic.id, 0, first, first + 1)
    queue = world.queue()
    unit = queue.find(first)
    assert unit is not None
    header = read_header(body_of(world.store.reader.entry(queue, unit).entry))
    if header.is_transactional and any(
        each.producer_id == header.producer_id and each.first <= first for each in found
    ):
        return []
    return [record.value or b"" for record in records]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than two delayed records are scheduled two at a time."""
    monkeypatch.setattr(delay, "WAITS_MAX", 2)
    monkeypatch.setattr(topic_checks, "WAITS_MAX", 2)
    monkeypatch.setattr(delay_schedule, "STEP_RECORDS", 2)


@pytest.mark.row("Y-02")
@pytest.mark.parametrize("how", ["kill", "power"])
def test_after_a_cut_at_any_write_every_record_comes_once(how: str) -> None:
    random = seeded()
    seed = random.randrange(1 << 32)
    whole = MemoryDisk()
    Run(whole, seed).go()
    total = whole.operation_count
    died = 0
    for _ in range(budget("record_delay_cuts")):
        disk = MemoryDisk(
            crash_at=random.randint(10, total), crash_keeps=random.choice((0, 1, 50, 400))
        )
        run = Run(disk, seed)
        run.go()
        died += disk.is_dead
        left = disk.killed() if how == "kill" else disk.power_cut(random)
        try:
            world = Postponing(CONFIG, left)
            world.store.topics.get("orders")
        except StoreError as error:  # the topic itself was lost
            assert not run.promised, error
            continue
        world.clock.advance(run.world.clock.now_ms() - world.clock.now_ms())
        check(world, run)
        world.store.close()
    assert died, "no run died"
