"""The benchmark's own arithmetic and its filling of a directory; no server runs here."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from bench.delay import CASES, FULL, LEVEL, OURS, QUICK, THEIRS, Run, order
from bench.load.delayed import GROUP, fill
from bench.load.java import JavaLoad, LoadFailed, read
from bench.measure.results import Report
from tests.store.waiting_store import CONFIG, WaitingStore

from rockgate.protocol.remoting.system_topics import TIMES_TOPIC
from rockgate.store.state.topicchanges import NewTopic


def a_run() -> Run:
    return Run(FULL, Report(name="delay", question="?", peers={}), cast(JavaLoad, None))


def test_who_begins_alternates_from_round_to_round() -> None:
    servers = {OURS: "a:1", THEIRS: "b:2"}
    assert [name for turn in range(2) for name, _ in order(servers, turn)] == [
        OURS,
        THEIRS,
        THEIRS,
        OURS,
    ]


def test_a_sample_is_kept_and_the_middle_one_counts() -> None:
    run = a_run()
    for value in (9.0, 1.0, 4.0004):
        run.add(LEVEL, OURS, value)
    assert run.report.samples == {LEVEL: {OURS: [9.0, 1.0, 4.0]}}
    assert run.median(LEVEL, OURS) == 4.0


def test_a_bar_is_held_against_its_limit() -> None:
    run = a_run()
    run.bar("late", 50.004, "ms", {"at_most": 50})
    run.bar("rate", 19_999.0, "1/s", {"at_least": 20_000})
    assert [bar.holds for bar in run.report.bars] == [True, False]


def test_the_quick_plan_does_all_of_the_full_one_with_less() -> None:
    assert set(CASES) == {"lateness", "memory", "overdue", "memory-most"}
    assert 0 < QUICK.waiting < FULL.waiting == 1_000_000
    assert 0 < QUICK.waiting_most < FULL.waiting_most == 10_000_000
    assert FULL.timer_rate == 5_000


def test_the_numbers_of_a_program_are_those_of_its_line() -> None:
    assert read("noise\n@@ 1.500 20.000 -3.000\n", "") == [1.5, 20.0, -3.0]
    with pytest.raises(LoadFailed, match="only 3 of 4"):
        read("", "java.lang.IllegalStateException: only 3 of 4")


def test_a_filled_directory_holds_messages_that_come_at_their_times() -> None:
    world = WaitingStore(config=replace(CONFIG, segment_bytes=1 << 20))
    world.store.topics.create(NewTopic(name=TIMES_TOPIC, queue_count=1, is_internal=True))
    count, now_ms = 2 * GROUP + 7, world.clock.now_ms()
    fill(world.store, "target", count, now_ms, 10)
    world.open()
    assert world.store.delay.waiting_count == count
    world.pass_time(GROUP * 10)
    assert world.store.delay.waiting_count == count - GROUP - 1
    world.pass_time(count * 10)
    assert len(world.delivered()) == count
    assert world.store.deliveries.lost_count == 0
