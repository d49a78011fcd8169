from typing import Any

from rockgate.pipeline.report.tables import table


def test_columns_lie_under_their_titles_and_numbers_to_the_right() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "count": 7},
        {"name": "longer", "count": None, "more": 1},
    ]
    assert table({"name": "NAME", "count": "COUNT"}, rows) == (
        "NAME    COUNT\na           7\nlonger      -\n"
    )
    assert table({"name": "NAME", "count": "COUNT"}, []) == "NAME  COUNT\n"
