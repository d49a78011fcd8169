"""Walks over every kind of entry: what is passed over, what is checked, and where damage stops."""

from __future__ import annotations

import pytest
from tests.store.logs import draft, new_log

from rockgate.protocol.entry import INDEXED, EntryError
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.testing.memory_files import MemoryDisk

KINDS = {"message": 0, "batch": 1, "indexed": 2, "state": 3}


def mixed_log() -> CommitLog:
    """Forty rounds of each kind, over several segments."""
    log = new_log(MemoryDisk().root())
    for number in range(160):
        one = draft(number)
        kind = number % 4
        if kind == KINDS["state"]:
            one = one._replace(offset=-1)
        elif kind:
            flags = INDEXED if kind == KINDS["indexed"] else 0
            one = one._replace(batch_count=3, sys_flag=flags)
        log.append(one)
    assert len(log.segments) > 3
    return log


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(
    ("batches", "messages", "wanted"),
    [
        (True, True, {"message", "batch", "indexed", "state"}),
        (False, True, {"message", "indexed", "state"}),
        (True, False, {"batch", "indexed", "state"}),
        (False, False, {"indexed", "state"}),
    ],
)
def test_a_walk_returns_what_is_wanted_in_order(
    batches: bool, messages: bool, checks: bool, wanted: set[str]
) -> None:
    log = mixed_log()
    every = [(entry.position, entry.queue_offset) for _, entry in log.walk(0)]
    kinds = list(KINDS)
    expected = [each for index, each in enumerate(every) if kinds[index % 4] in wanted]
    walk = log.walk(0, batches=batches, messages=messages, checks=checks)
    assert [(entry.position, entry.queue_offset) for _, entry in walk] == expected
    assert walk.position == log.end


@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_that_checks_stops_at_damage_even_where_it_passes_over(kind: str) -> None:
    log = mixed_log()
    position = [entry.position for _, entry in log.walk(0)][40 + KINDS[kind]]
    log.segments.row[position // log.segments.row[0].size].mapping.view[
        position % log.segments.row[0].size + 150
    ] ^= 1
    walk = log.walk(0, batches=False, messages=False, checks=True)
    with pytest.raises(EntryError, match="checksum"):
        list(walk)
    assert walk.position == position
