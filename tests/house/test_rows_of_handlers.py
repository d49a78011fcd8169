"""Dispatch is typed: what a row takes and returns is erased in one place, and nowhere else."""

import re

from tests.house.checkout import ROOT, python_files

ERASED = re.compile(r"\b(?:Row|Handler|Api)\[Any\b")
TABLES = {
    "gateway/rockgate/gateway/kafka/request/handler.py": 4,
    "protocol/rockgate/protocol/kafka/api.py": 1,
}
"""Where tables are declared, and the constructor that checks what goes in."""


def test_types_of_handlers_are_erased_for_the_table_alone() -> None:
    found = {
        path.as_posix(): len(ERASED.findall((ROOT / path).read_text(encoding="utf-8")))
        for path in python_files("gateway", "protocol")
    }
    assert {path: count for path, count in found.items() if count} == TABLES
