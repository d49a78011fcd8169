"""docs/internals/compaction.md and the code agree."""

from __future__ import annotations

import re
from pathlib import Path

from rockgate.store.upkeep.compaction import cleaner, cleaning, keymap

PAGE = Path(__file__).resolve().parents[3] / "docs/internals/compaction.md"


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 7
    known = {**vars(cleaner), **vars(cleaning), **vars(keymap)}
    assert {name: int(value) for name, value in rows} == {name: known[name] for name, _ in rows}
