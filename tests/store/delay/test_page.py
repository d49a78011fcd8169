"""docs/internals/delay.md says what the code does."""

from __future__ import annotations

import re

from tests.house.checkout import ROOT

from rockgate.store.clock import LASTS_MS, STEP_MS
from rockgate.store.delay import (
    changes,
    delivery,
    given,
    held,
    offset_set,
    units,
    wheel,
)
from rockgate.store.delay.changes import DELAY_TOPIC, DelayChangeKind, encode_schedule

PAGE = (ROOT / "docs/internals/delay.md").read_text()


def rows(after: str) -> list[list[str]]:
    table = PAGE[PAGE.index(after) :].split("\n\n| ")[1].split("\n\n")[0]
    return [[cell.strip(" `") for cell in line.split("|")] for line in table.splitlines()[2:]]


def test_the_kinds_of_changes_are_listed() -> None:
    assert [(int(row[1]), row[2]) for row in rows("## Changes")] == [
        (k, k.name) for k in DelayChangeKind
    ]
    assert DELAY_TOPIC.decode() in PAGE


def test_the_kinds_of_changes_of_held_entries_are_listed() -> None:
    listed = [(int(row[1]), row[2]) for row in rows("### Held entries")]
    assert listed == [(kind, kind.name) for kind in held.HeldChangeKind]
    assert held.HELD_TOPIC.decode() in PAGE


def test_the_dump_is_a_schedule() -> None:
    [text] = re.findall(r"^```text delay-schedule\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    data = b""
    for line in text.splitlines():
        found = re.match(r"(\d+) +((?:[0-9a-f]{2}(?: |$))+)", line)
        assert found is not None and int(found[1]) == len(data), line
        data += bytes.fromhex(found[2])
    [body] = encode_schedule(bytes(range(1, 17)), 2, [(17, 1_700_000_000_000)])
    assert data == body


def test_the_layout_of_a_unit_is_as_drawn() -> None:
    sizes = [(int(row[1]), int(row[2])) for row in rows("## Units")]
    assert sizes == [(0, 8), (8, 8), (16, 8), (24, 4), (28, 4)]
    assert units.UNIT.size == 32 == sum(size for _, size in sizes)
    assert str(units.NONE) in PAGE


def test_the_numbers_are_those_of_the_code() -> None:
    assert offset_set.CHUNK_BITS == 4096 and "chunks of 4,096" in PAGE
    assert wheel.MINUTES == 366 * 24 * 60 and "366 days" in PAGE
    assert wheel.LEAD_SECONDS == 20 and "Twenty seconds" in PAGE
    assert wheel.NEAR_MAX == 4096 and "4,096 due items" in PAGE
    assert wheel.BACK_MS == 30 * 86_400_000 and "thirty days in the past" in PAGE
    assert (delivery.COUNT_MAX, delivery.BYTES_MAX) == (64, 256 << 10)
    assert "64 due items (256 KiB)" in PAGE
    assert delivery.RETRY_MS == 10_000 and "after ten seconds" in PAGE
    assert given.ORIGIN.decode() in PAGE
    assert (STEP_MS, LASTS_MS) == (60_000, 300_000)
    assert "a minute or more" in PAGE and "only after five minutes" in PAGE
    assert changes.DUE_BITS == 43 and "lower 43" in PAGE
    assert changes.MINUTES_MAX == 1_048_575 and "1,048,575 minutes" in PAGE
