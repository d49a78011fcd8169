"""Topologies on the topics that exist: numbers of tasks and partitions, and what does not fit."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.groups.streams.bench import COUNTS, SIMPLE, subtopology, topology

from rockgate.gateway.kafka.groups.streams.configured import (
    ConfiguredTopology,
    StatusCode,
    check_topology,
    configure,
)
from rockgate.gateway.kafka.groups.streams.topology import StreamsTopology
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode


def configured(
    said: StreamsTopology, tasks_max: int = 1_000, /, **topics: int
) -> ConfiguredTopology:
    there = {name.replace("_", "-"): count for name, count in topics.items()}
    return configure(said, there.get, tasks_max)


def problem(said: StreamsTopology, /, **topics: int) -> tuple[StatusCode, str]:
    found = configured(said, **topics).problem
    assert found is not None
    return found.code, found.detail


def test_there_are_as_many_tasks_as_the_largest_source_has_partitions() -> None:
    assert configured(SIMPLE, **{"in": 4}).task_counts == {"0": 4}
    both = topology(subtopology("0", "a b"))
    assert configured(both, a=2, b=5).task_counts == {"0": 5}


def test_source_topics_that_are_missing_are_named() -> None:
    said = topology(subtopology("0", "a b c d"))
    assert problem(said, a=1) == (
        StatusCode.MISSING_SOURCE_TOPICS,
        "Source topics b, c, d are missing.",
    )
    assert problem(said)[1] == "Source topics a, b, c and 1 additional topics are missing."


def test_internal_topics_are_as_large_as_the_sources_of_who_writes_them() -> None:
    found = configured(COUNTS, **{"in": 4})
    assert [(each.name, each.partitions) for each in found.missing] == [
        ("g-changelog", 4),
        ("g-repartition", 4),
    ]
    assert found.problem is not None and found.problem.code is StatusCode.MISSING_INTERNAL_TOPICS
    assert found.problem.detail == "Internal topics are missing: g-changelog, g-repartition"
    ready = configured(COUNTS, **{"in": 4, "g_repartition": 4, "g_changelog": 4})
    assert ready.is_ready and ready.task_counts == {"0": 4, "1": 4}


def test_a_repartition_topic_may_have_a_number_of_its_own() -> None:
    said = topology(
        subtopology("0", "in", sinks="r"),
        subtopology("1", repartition={"r": 7}, changelogs="c"),
    )
    found = configured(said, **{"in": 4})
    assert {each.name: each.partitions for each in found.missing} == {"r": 7, "c": 7}


def test_repartition_topics_may_follow_each_other_in_any_order() -> None:
    said = topology(
        subtopology("0", repartition="r2", changelogs="c"),
        subtopology("1", repartition="r1", sinks="r2"),
        subtopology("2", "in", sinks="r1"),
    )
    found = configured(said, **{"in": 3})
    assert {each.name: each.partitions for each in found.missing} == {"r1": 3, "r2": 3, "c": 3}


def test_a_loop_takes_its_number_from_the_source_that_enters_it() -> None:
    said = topology(subtopology("0", "in", repartition="r", sinks="r"))
    assert configured(said, **{"in": 3}).partition_counts["r"] == 3


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (topology(subtopology("0")), "No source topics found for subtopology 0"),
        (topology(subtopology("0", repartition="r", sinks="r")), "There may be loops"),
        (topology(subtopology("0", "in", repartition="r")), "never used as a sink topic"),
    ],
)
def test_a_topology_that_fits_no_topics_is_refused(said: StreamsTopology, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as refused:
        check_topology(said)
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_topics_that_are_joined_have_equally_many_partitions() -> None:
    said = topology(subtopology("0", "a b", copartitions=(((0, 1), ()),)))
    assert configured(said, a=2, b=2).is_ready
    assert problem(said, a=2, b=3) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{a=2, b=3}]",
    )


def test_a_repartition_topic_follows_the_topic_that_it_is_joined_with() -> None:
    said = topology(
        subtopology("0", "a", sinks="r"),
        subtopology("1", "b", repartition="r", copartitions=(((0,), (0,)),)),
    )
    assert configured(said, a=2, b=6).partition_counts["r"] == 6
    fixed = topology(
        subtopology("0", "a", sinks="r"),
        subtopology("1", "b", repartition={"r": 4}, copartitions=(((0,), (0,)),)),
    )
    code, detail = problem(fixed, a=2, b=6)
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert detail.startswith("Number of partitions [4] of repartition topic [r] doesn't match")


def test_joined_repartition_topics_become_as_large_as_the_largest() -> None:
    said = topology(
        subtopology("0", "a", sinks="r"),
        subtopology("1", "b", sinks="s"),
        subtopology("2", repartition="r s", copartitions=(((), (0, 1)),)),
    )
    counts = configured(said, a=2, b=6).partition_counts
    assert (counts["r"], counts["s"]) == (6, 6)


def test_an_internal_topic_of_another_size_is_reported() -> None:
    topics = {"in": 4, "g_repartition": 4, "g_changelog": 3}
    assert problem(COUNTS, **topics) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic g-changelog has different number of partitions: expected 4, found 3",
    )


def test_too_many_tasks_are_not_assigned() -> None:
    found = configured(SIMPLE, 3, **{"in": 4})
    assert not found.is_ready and found.task_counts == {}
