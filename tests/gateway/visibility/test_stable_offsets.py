"""What readers see of transactions, and that a start learns the same from the log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.kafka.transactions.ledger import Ledger
from tests.world import CONFIG

from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.store.config import StoreConfig

SYNC = StoreConfig(segment_bytes=1 << 20, flush="sync", key_index=False)


def test_an_open_transaction_holds_the_last_stable_offset_at_its_first_batch() -> None:
    ledger = Ledger()
    ledger.topic()
    ledger.append()
    producer = ledger.init().producer
    ledger.write(producer, 0, b"a")
    ledger.append(value=b"plain")
    assert ledger.bounds() == (1, 3)
    assert ledger.read() == [b"value"]
    assert ledger.read(committed=False) == [b"value", b"a", b"plain"]


def test_of_two_open_transactions_the_older_counts_and_then_the_other() -> None:
    ledger = Ledger()
    ledger.topic()
    one, two = ledger.init("one").producer, ledger.init("two").producer
    ledger.write(one, 0, b"1", id_="one")
    ledger.write(two, 0, b"2", id_="two")
    assert ledger.bounds()[0] == 0
    ledger.end(one, commit=True, id_="one")
    assert ledger.bounds() == (1, 3)
    ledger.end(two, commit=True, id_="two")
    assert ledger.bounds() == (4, 4)
    assert ledger.read() == [b"1", b"2"]


def test_what_was_aborted_is_fetched_and_named_but_not_shown() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init().producer
    ledger.write(producer, 0, b"a", b"b")
    after = ledger.end(producer, commit=False).producer
    ledger.write(after, 0, b"c")
    ledger.end(after, commit=True)
    asked = FetchPartition(partition=0, fetch_offset=1)
    found, _, count = ledger.partitions.read(ledger.queue(), asked, 1 << 20, True, True, None)
    assert count == 4, "two batches and two markers"
    assert found.aborted == [(producer.id, 0)]
    assert ledger.read() == [b"c"]
    later = FetchPartition(partition=0, fetch_offset=3)
    found, _, _ = ledger.partitions.read(ledger.queue(), later, 1 << 20, True, True, None)
    assert found.aborted == [], "it ended before what was asked for"


def test_a_partition_that_was_added_and_not_written_gets_no_marker() -> None:
    ledger = Ledger()
    ledger.topic(partitions=2)
    producer = ledger.init().producer
    ledger.add(producer, 0, 1)
    ledger.write(producer, 0, b"a")
    ledger.end(producer, commit=True)
    assert ledger.bounds(0) == (2, 2)
    assert ledger.bounds(1) == (0, 0)


def test_nothing_counts_as_committed_before_its_marker_is_on_disk() -> None:
    ledger = Ledger(SYNC)
    topic = ledger.topic()
    producer = ledger.coordinator.init("tx", 1000, None)
    key = (topic.id, 0)
    ledger.coordinator.add("tx", producer, [key])
    ledger.append()
    ledger.folds.stable_offsets.wrote(*key, producer.id, 0)
    ledger.store.flush()
    assert ledger.bounds() == (0, 1)
    ledger.coordinator.end("tx", producer, True, True)
    assert ledger.bounds() == (0, 1), "the marker could still be lost"
    ledger.store.flush()
    assert ledger.bounds() == (2, 2)


def test_pending_offsets_are_seen_by_no_one_until_the_commit() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init().producer
    ledger.write(producer, 0, b"a")
    assert ledger.add_group(producer) == 0
    assert ledger.commit_offset(producer, 41) == 0
    unstable = 88
    assert ledger.committed_offset() == (unstable, -1)
    assert ledger.committed_offset(stable=False) == (0, -1)
    after = ledger.end(producer, commit=True).producer
    assert ledger.committed_offset() == (0, 41)
    assert ledger.commit_offset(after, 99) == 0
    assert ledger.committed_offset() == (unstable, -1)
    assert ledger.committed_offset(stable=False) == (0, 41)
    ledger.end(after, commit=False)
    assert ledger.committed_offset() == (0, 41)


def test_the_members_of_a_group_are_fenced_by_its_generation() -> None:
    ledger = Ledger()
    ledger.topic()
    producer = ledger.init().producer
    ledger.add_group(producer)
    illegal_generation = 22
    code = ledger.commit_offset(producer, 5, generation=3, member="m")
    assert code == illegal_generation
    assert ledger.committed_offset() == (0, -1)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_restart_changes_nothing(is_killed: bool) -> None:
    ledger = Ledger()
    ledger.topic(partitions=2)
    producer = ledger.init().producer
    ledger.write(producer, 0, b"gone")
    producer = ledger.end(producer, commit=False).producer
    ledger.write(producer, 0, b"kept")
    producer = ledger.end(producer, commit=True).producer
    ledger.write(producer, 0, b"open")
    ledger.write(producer, 0, b"open too", partition=1)
    ledger.commit_offset(producer, 12)
    before = ledger.bounds(0), ledger.bounds(1)
    ledger.kill() if is_killed else ledger.reopen()
    assert (ledger.bounds(0), ledger.bounds(1)) == before
    assert ledger.read() == [b"kept"]
    assert ledger.committed_offset() == (88, -1)
    # And it can continue: the producer never noticed.
    assert ledger.write(producer, 1, b"more") == 0
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.read() == [b"kept", b"open", b"more"]
    assert ledger.read(1) == [b"open too"]
    assert ledger.committed_offset() == (0, 12)


def test_aborted_transactions_of_deleted_records_are_forgotten_though_no_one_reads() -> None:
    ledger = Ledger()
    topic = ledger.topic()
    producer = ledger.init().producer
    for at in range(3):
        ledger.write(producer, 0, b"%d" % at)
        producer = ledger.end(producer, commit=False).producer
    assert len(ledger.folds.stable_offsets.aborted(topic.id, 0, 0, 99)) == 3
    ledger.store.topics.advance_log_starts({topic: {0: 4}})
    assert len(ledger.folds.stable_offsets.aborted(topic.id, 0, 0, 99)) == 1
    assert ledger.read() == []
    ledger.store.topics.advance_log_starts({topic: {0: 6}})
    assert ledger.folds.stable_offsets.aborted(topic.id, 0, 0, 99) == []
    assert not ledger.folds.stable_offsets.transactional, (
        "a partition without transactions costs nothing"
    )


def test_a_deleted_topic_takes_its_transactions_along() -> None:
    ledger = Ledger()
    topic = ledger.topic()
    ledger.topic("other")
    producer = ledger.init().producer
    ledger.write(producer, 0, b"a")
    ledger.write(producer, 0, b"b", topic="other")
    ledger.store.topics.delete([topic])
    assert ledger.end(producer, commit=True).code == 0
    assert ledger.read(topic="other") == [b"b"]
    assert ledger.folds.stable_offsets.partitions_of(producer.id) == []


# A model: what a reader of committed data sees is what was committed, in the order it was written.

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 1)),
        st.tuples(st.just("commit"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("abort"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("init"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("restart"), st.booleans(), st.just(0)),
        st.tuples(st.just("plain"), st.just(0), st.integers(0, 1)),
        st.tuples(st.just("snapshot"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


class Model:
    """Every value that was written to two partitions, with its transaction and how that ended."""

    def __init__(self) -> None:
        self.written: tuple[list[tuple[bytes, int]], ...] = ([], [])
        self.open: dict[int, int] = {}
        self.outcomes: dict[int, str] = {0: "commit"}

    def begin(self, client: int) -> int:
        if client not in self.open:
            self.open[client] = len(self.outcomes)
            self.outcomes[self.open[client]] = "open"
        return self.open[client]

    def end(self, client: int, outcome: str) -> None:
        if client in self.open:
            self.outcomes[self.open.pop(client)] = outcome

    def visible(self, partition: int) -> list[bytes]:
        shown = []
        for value, number in self.written[partition]:
            if self.outcomes[number] == "open":
                break
            if self.outcomes[number] == "commit":
                shown.append(value)
        return shown


@settings(max_examples=budget("transaction_models"), deadline=None)
@given(STEPS, st.booleans())
def test_what_is_committed_is_read_in_order_and_nothing_else(
    steps: list[tuple[str, int, int]], is_v2: bool
) -> None:
    ledger = Ledger(CONFIG)
    ledger.topic(partitions=2)
    model = Model()
    sequences: dict[tuple[ProducerIdAndEpoch, int], int] = {}
    producers = [ledger.init(f"tx{n}").producer for n in range(3)]
    for number, (what, client, partition) in enumerate(steps):
        value = b"%d" % number
        if what == "write":
            key = (producers[client], partition)
            if not is_v2:
                ledger.add(producers[client], partition, id_=f"tx{client}")
            version = 12 if is_v2 else 11
            code = ledger.write(
                producers[client],
                sequences.get(key, 0),
                value,
                id_=f"tx{client}",
                partition=partition,
                version=version,
            )
            assert code == 0
            sequences[key] = sequences.get(key, 0) + 1
            model.written[partition].append((value, model.begin(client)))
        elif what in ("commit", "abort"):
            is_commit = what == "commit"
            version = 5 if is_v2 else 4
            id_ = f"tx{client}"
            ended = ledger.end(producers[client], commit=is_commit, id_=id_, version=version)
            if client in model.open:
                assert ended.code == 0
                model.end(client, what)
            if ended.code == 0 and is_v2:
                producers[client] = ended.producer
        elif what == "init":
            producers[client] = ledger.init(f"tx{client}").producer
            model.end(client, "abort")
        elif what == "restart":
            ledger.kill() if client else ledger.reopen()
        elif what == "plain":
            ledger.append(partition=partition, value=value)
            model.written[partition].append((value, 0))
        else:
            ledger.clock.advance(120_000)
            for _ in range(20):
                ledger.store.tick()
        for at in (0, 1):
            assert ledger.read(at) == model.visible(at), what
            everything = [each for each, _ in model.written[at]]
            assert ledger.read(at, committed=False) == everything
