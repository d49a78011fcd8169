"""docs/internals/pop.md says what the code does."""

from __future__ import annotations

import re

from tests.house.checkout import ROOT

from rockgate.store.inflight import fold, window
from rockgate.store.inflight.changes import (
    INFLIGHT_TOPIC,
    Acquire,
    EndReason,
    InFlightChangeKind,
    encode,
)

PAGE = (ROOT / "docs/internals/pop.md").read_text()


def rows(head: str) -> list[list[str]]:
    table = PAGE[PAGE.index(head) :].split("\n\n")[0]
    return [[cell.strip(" `") for cell in line.split("|")] for line in table.splitlines()[2:]]


def test_the_kinds_of_changes_are_listed() -> None:
    listed = [(int(row[1]), row[2]) for row in rows("| Kind | Name |")]
    assert listed == [(kind, kind.name) for kind in InFlightChangeKind]
    assert INFLIGHT_TOPIC.decode() in PAGE


def test_the_reasons_of_an_end_are_listed() -> None:
    listed = [(int(row[1]), row[2]) for row in rows("| Reason | Name |")]
    assert listed == [(reason, reason.name) for reason in EndReason]


def test_the_dump_is_an_acquisition() -> None:
    [text] = re.findall(r"^```text inflight-acquire\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    data = b""
    for line in text.splitlines():
        found = re.match(r"(\d+) +((?:[0-9a-f]{2}(?: |$))+)", line)
        assert found is not None and int(found[1]) == len(data), line
        data += bytes.fromhex(found[2])
    change = Acquire("orders", bytes(range(1, 17)), 2, 17, 21, 1_700_000_000_000, False, [17, 4])
    assert data == encode(change)


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"{window.IN_FLIGHT_MAX:,} offsets in flight" in PAGE
    assert fold.BUCKET_MS * 4 == 1_000
    assert "four times a second" in PAGE
