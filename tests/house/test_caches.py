"""A cache that is bounded in bytes is written once."""

import re

from tests.house.checkout import ROOT, python_files

EVICTS = re.compile(r"popitem\(\s*last=False\s*\)")
CACHE = "gateway/rockgate/gateway/runtime/bounded_cache.py"
REPORTS = "gateway/rockgate/gateway/batches/threads.py"
"""Remembers a count of positions and no values."""


def test_one_module_of_the_gateway_evicts_what_was_not_used_for_longest() -> None:
    found = {
        path.as_posix()
        for path in python_files("gateway")
        if EVICTS.search((ROOT / path).read_text(encoding="utf-8"))
    }
    assert found == {CACHE, REPORTS}
