"""Numbers of partitions: a table is read back as it was written, and never moves a number."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.rocketmq.topics.partitions import (
    PARTITIONS_MAX,
    RUNS_MAX,
    InvalidTable,
    PartitionTable,
    QueuePlace,
    Run,
)

brokers = st.sampled_from(["a", "b", "broker-c", "d.e_f"])
tables = st.lists(st.builds(Run, brokers, st.integers(1, 9)), max_size=12).map(PartitionTable)


def test_a_later_run_of_a_broker_goes_on_with_its_queues() -> None:
    table = PartitionTable.parse("a:4;b:2;a:2")
    assert table.count == 8
    found = [table.place(number) for number in (0, 3, 4, 5, 6, 7)]
    expected = [("a", 0), ("a", 3), ("b", 0), ("b", 1), ("a", 4), ("a", 5)]
    assert found == [QueuePlace(*each) for each in expected]
    assert (table.number("a", 5), table.number("b", 2), table.number("c", 0)) == (7, None, None)


@pytest.mark.parametrize(
    "text",
    [
        *("a", "a:", ":1", "a:0", "a:-1", "a:1;", ";a:1", "a:1;;b:1", "a: 1", "a:\u0661", "a\n:1"),
        *(f"a:{PARTITIONS_MAX + 1}", "a:99999999999", "x" * 40_000, "a:1;b:1;" * RUNS_MAX + "a:1"),
    ],
)
def test_a_text_that_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidTable):
        PartitionTable.parse(text)


@settings(max_examples=budget("property_examples"))
@given(tables)
def test_a_table_is_read_back_as_it_was_written(table: PartitionTable) -> None:
    assert PartitionTable.parse(table.text).runs == table.runs


@settings(max_examples=budget("property_examples"))
@given(tables)
def test_numbers_and_queues_are_one_to_one(table: PartitionTable) -> None:
    places = [table.place(number) for number in range(table.count)]
    assert len(set(places)) == table.count
    assert [table.number(*place) for place in places] == list(range(table.count))
    for broker in table.brokers:
        queues = sorted(place.queue_id for place in places if place.broker == broker)
        assert queues == list(range(table.count_of(broker)))


@settings(max_examples=budget("property_examples"))
@given(tables, st.dictionaries(brokers, st.integers(0, 30)), st.integers(0, 40))
def test_growing_moves_no_number(table: PartitionTable, counts: dict[str, int], more: int) -> None:
    before = [table.place(number) for number in range(table.count)]
    for grown in (table.covering(counts), table.spread(table.count + more, ["a", "b", "zz"])):
        assert [grown.place(number) for number in range(table.count)] == before
        assert grown.continues(table)
    covering = table.covering(counts)
    assert all(covering.count_of(name) >= count for name, count in counts.items())
    assert table.spread(table.count + more, ["a", "zz"]).count == table.count + more


@settings(max_examples=budget("property_examples"))
@given(tables, st.data())
def test_spans_are_the_places_one_by_one(table: PartitionTable, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, table.count))
    end = data.draw(st.integers(first, table.count))
    found = [
        (begin + step, QueuePlace(broker, queue_id + step))
        for begin, stop, broker, queue_id in table.spans(first, end)
        for step in range(stop - begin)
    ]
    assert found == [(number, table.place(number)) for number in range(first, end)]


def test_a_table_that_begins_otherwise_does_not_continue_another() -> None:
    table = PartitionTable.parse("a:4;b:2")
    for text, expected in (("a:4;b:2;a:1", True), ("a:4;b:2", True), ("a:4;b:3", True)):
        assert PartitionTable.parse(text).continues(table) is expected
    for text in ("a:4;b:1", "a:5;b:2", "b:2;a:4", "a:4", ""):
        assert not PartitionTable.parse(text).continues(table)


def test_new_partitions_are_spread_over_the_brokers_with_the_fewest() -> None:
    assert PartitionTable().spread(5, ["b", "a"]).text == "a:3;b:2"
    assert PartitionTable.parse("a:3").spread(5, ["a", "b"]).text == "a:3;b:2"
