"""The page of benchmarks says what the newest result files say."""

import json
from pathlib import Path

import pytest
from docs import benchmarks

MARKED = f"# Benchmarks\n\n{benchmarks.BEGIN}\nstale text\n{benchmarks.END}\nbehind\n"


def written(root: Path, name: str, measured: float) -> None:
    content = {
        "benchmark": name.partition("-")[0],
        "question": "how fast?",
        "command": "python -m bench toy",
        "time": "2026-11-16T01:02:03+00:00",
        "commit": "a" * 40,
        "machine": {"cpu": "a processor", "cores": 2, "python": "3.11.7"},
        "peers": {"other": "1.0"},
        "bars": [
            {"name": "ratio", "measured": measured, "at_most": 1.0, "unit": "x", "holds": False},
            {"name": "floor", "measured": 9.0, "at_least": 2.5, "unit": "s", "holds": True},
        ],
    }
    (root / "bench" / "results" / name).write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "bench" / "results").mkdir(parents=True)
    (tmp_path / benchmarks.PAGE).parent.mkdir(parents=True)
    (tmp_path / benchmarks.PAGE).write_text(MARKED, encoding="utf-8")
    return tmp_path


def test_the_newest_result_of_each_benchmark_is_shown_with_its_verdicts(root: Path) -> None:
    written(root, "toy-2026-11-15.json", 7.0)
    written(root, "toy-2026-11-16.json", 3.5)
    written(root, "able-2026-11-01.json", 8.0)
    page = benchmarks.render(root)
    assert page.startswith("# Benchmarks\n") and page.endswith("behind\n")
    assert page.index("### able") < page.index("### toy")
    assert "| ratio | 3.5 x | at most 1 | **does not hold** |" in page
    assert "| floor | 9 s | at least 2.5 | holds |" in page
    assert "| ratio | 7 x" not in page
    assert "stale text" not in page
    assert "beside other 1.0" in page


def test_rendering_twice_changes_nothing(root: Path) -> None:
    written(root, "toy-2026-11-16.json", 3.5)
    once = benchmarks.render(root)
    (root / benchmarks.PAGE).write_text(once, encoding="utf-8")
    assert benchmarks.render(root) == once


def test_a_page_without_its_marks_is_refused(root: Path) -> None:
    (root / benchmarks.PAGE).write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="each mark"):
        benchmarks.render(root)
