"""How much work a test with a count may do: `budget("fuzz_rounds")`.

The counts are only in tests/budget.toml, so that one file determines the cost of `make test` and
`make test-long`. The environment variable ROCKGATE_BUDGET selects the table: `short` (the default)
or `long`.
"""

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("budget.toml")
TABLES = ("short", "long")


def budget(name: str) -> int:
    """Return the count called `name` in the table that ROCKGATE_BUDGET selects."""
    return count(counts(), chosen_table(), name)


def chosen_table() -> str:
    """Return `short` unless ROCKGATE_BUDGET is set; an unknown table is an error."""
    table = os.environ.get("ROCKGATE_BUDGET") or "short"
    if table not in TABLES:
        raise ValueError(f"ROCKGATE_BUDGET={table!r} names no table: use {' or '.join(TABLES)}")
    return table


@cache
def counts() -> Mapping[str, Mapping[str, int]]:
    """Both tables, read from the file once."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def count(tables: Mapping[str, Mapping[str, int]], table: str, name: str) -> int:
    """Return one count of `tables`; a missing one is a KeyError that says where to add it."""
    if name not in tables[table]:
        raise KeyError(
            f"no count {name!r} in [{table}]: add it to both tables of tests/{FILE.name}"
        )
    return tables[table][name]
