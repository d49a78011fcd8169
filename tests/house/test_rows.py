"""The requirement rows: their data, the marks on the tests, and the page made of both."""

import ast
import re
from pathlib import Path

import pytest
from docs import rows
from docs.rows import Mark, RowError
from tests.house.checkout import ROOT

# Where the inventories lie, in a checkout that has them beside it.
INVENTORIES = ROOT.parent / "shared" / "requirements"
# Two inventories number something T-n: transactions keep the letter, the traps of the other are
# called TRAP-n here.
TRAPS_IN = "rocketmq-000-002-003-004.md"
ROW_COUNT = 584
# What the inventories have no row for: administration by the client, polling, the blocking classes,
# FastStream's broker, security, compaction, configs and features of Kafka, pushed metrics, and the
# groups of Kafka 4.3, which are numbered by kind.
OWN_COUNTS = {
    "ADM": 7,
    "LITE": 5,
    "BLOCK": 2,
    "FS": 4,
    "SEC": 12,
    "CMP": 6,
    "CFG": 3,
    "FEAT": 2,
    "TEL": 1,
}
OWN_GROUPS = (*range(1, 8), *range(11, 14), *range(21, 29))
OWN = {f"{letters}-{n}" for letters, count in OWN_COUNTS.items() for n in range(1, count + 1)} | {
    f"GRP-{n}" for n in OWN_GROUPS
}


def all_rows() -> list[rows.Row]:
    return [row for chapter in rows.load() for row in chapter.rows()]


@pytest.mark.row("D-18")
def test_every_row_of_the_inventories_has_a_promise() -> None:
    found = {row.id for row in all_rows()}
    assert len(found) == ROW_COUNT
    if INVENTORIES.is_dir():
        assert found - OWN == inventory_ids(INVENTORIES)
    assert found >= OWN


def test_a_promise_is_one_line_that_can_be_read_in_a_table() -> None:
    for row in all_rows():
        for text in (row.promise, row.departs or "a reason"):
            assert 0 < len(text) <= 220, row.id
            assert text == " ".join(text.split()), row.id
        assert row.promise.endswith("."), row.id


def test_every_marked_row_exists() -> None:
    unknown = rows.shown_by().keys() - {row.id for row in all_rows()}
    assert unknown == set(), "no such row in docs/requirements"


def test_what_we_do_instead_is_shown_by_a_test_for_every_row_that_departs() -> None:
    departing = {row.id for row in all_rows() if row.departs}
    assert departing - rows.shown_by().keys() == set(), "a departure is a fact, not an intention"


def test_a_row_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    write_chapter(tmp_path, "01-a.toml", '[group.rows]\nX-1 = "One."')
    write_chapter(tmp_path, "02-b.toml", '[group.rows]\nX-1 = "Two."')
    with pytest.raises(RowError, match="row X-1 is in docs/requirements twice"):
        rows.load(tmp_path)


def test_a_departure_from_a_row_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_chapter(tmp_path, "a.toml", '[group.rows]\nX-1 = "One."\n[group.departs]\nX-2 = "why"')
    with pytest.raises(RowError, match=r"a\.toml: departs names rows of another group: \['X-2'\]"):
        rows.load(tmp_path)


def test_a_misspelt_table_is_refused(tmp_path: Path) -> None:
    write_chapter(tmp_path, "a.toml", '[group.rows]\nX-1 = "One."\n[group.depart]\nX-1 = "why"')
    with pytest.raises(RowError, match=r"a\.toml: unknown keys \['depart'\]"):
        rows.load(tmp_path)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('@pytest.mark.row("X-1")\ndef test_a(): ...', [("test_a", "X-1")]),
        (
            '@pytest.mark.row("X-1", "X-2")\nasync def test_a(): ...',
            [("test_a", "X-1"), ("test_a", "X-2")],
        ),
        ('@pytest.mark.row("X-1")\nclass TestA:\n    def test_b(self): ...', [("TestA", "X-1")]),
        (
            'class TestA:\n    @pytest.mark.row("X-1")\n    def test_b(self): ...',
            [("TestA.test_b", "X-1")],
        ),
        ('pytestmark = [pytest.mark.row("X-1")]', [("", "X-1")]),
        (
            '@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.row("X-1"))])\n'
            "def test_a(n): ...",
            [("test_a", "X-1")],
        ),
        ("@pytest.mark.java\ndef test_a(): ...", []),
    ],
)
def test_marks_are_found_where_a_reader_sees_them(
    source: str, found: list[tuple[str, str]]
) -> None:
    assert list(rows.marks_in(ast.parse(source), "test_x.py")) == found


def test_a_mark_that_marks_nothing_is_refused() -> None:
    hidden = 'def test_a():\n    pytest.mark.row("X-1")'
    with pytest.raises(RowError, match=r"test_x\.py:2: a row mark stands on a test"):
        list(rows.marks_in(ast.parse(hidden), "test_x.py"))


def test_a_mark_whose_id_is_not_written_out_is_refused() -> None:
    computed = "@pytest.mark.row(NAME)\ndef test_a(): ..."
    with pytest.raises(RowError, match=r"test_x\.py:1: a row mark takes ids written out"):
        list(rows.marks_in(ast.parse(computed), "test_x.py"))


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout with four rows: tested, departing, both, and neither."""
    promises = "".join(f'X-{number} = "Promise {number} | x."\n' for number in range(1, 5))
    departures = 'X-2 = "too slow"\nX-3 = "in part"'
    (tmp_path / "docs" / "requirements").mkdir(parents=True)
    write_chapter(
        tmp_path / "docs" / "requirements",
        "01-a.toml",
        f"[group.rows]\n{promises}[group.departs]\n{departures}",
    )
    (tmp_path / "tests" / "store").mkdir(parents=True)
    (tmp_path / "tests" / "store" / "test_log.py").write_text(
        '@pytest.mark.row("X-1", "X-3")\ndef test_it_holds(): ...\n'
    )
    (tmp_path / "compat-tests" / "x" / "node_modules").mkdir(parents=True)
    (tmp_path / "compat-tests" / "x" / "node_modules" / "test_foreign.py").write_text("not python")
    return tmp_path


def test_the_state_of_a_row_comes_from_its_marks_and_its_departure(house: Path) -> None:
    page = rows.render(house)
    link = "[test_it_holds](../../tests/store/test_log.py)"
    assert f"| X-1 | Promise 1 \\| x. | {link} |" in page
    assert "| X-2 | Promise 2 \\| x. | departs: too slow<br>(no test yet) |" in page
    assert f"| X-3 | Promise 3 \\| x. | departs: in part<br>{link} |" in page
    assert "| X-4 | Promise 4 \\| x. | not yet |" in page


def test_the_summary_counts_each_row_once_and_none_that_departs_as_shown(house: Path) -> None:
    page = rows.render(house)
    assert "| [Chapter A](#chapter-a) | 4 | 1 | 2 | 1 | 1 |" in page
    assert "| **all** | 4 | 1 | 2 | 1 | 1 |" in page


def test_the_same_mark_twice_is_one_link(house: Path) -> None:
    (house / "tests" / "store" / "test_log.py").write_text(
        '@pytest.mark.row("X-4")\n@pytest.mark.row("X-4")\ndef test_it_holds(): ...\n'
    )
    assert rows.shown_by(house) == {
        "X-4": [Mark(file="tests/store/test_log.py", test="test_it_holds")]
    }


def write_chapter(folder: Path, name: str, group: str) -> None:
    (folder / name).write_text(f'chapter = "Chapter A"\n[[group]]\ntitle = "Group"\n{group}\n')


def inventory_ids(folder: Path) -> set[str]:
    """The first cell of every table row that is an id."""
    found: set[str] = set()
    for path in sorted(folder.glob("*.md")):
        for match in re.finditer(r"^\| ([A-Z]+)-(\d+)\b", path.read_text(encoding="utf-8"), re.M):
            family = "TRAP" if match[1] == "T" and path.name == TRAPS_IN else match[1]
            found.add(f"{family}-{match[2]}")
    return found
