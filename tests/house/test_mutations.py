"""The table of mutations fits the source it would break; `make rows-mutate` tries them."""

import pytest
from docs import rows
from tests.house.checkout import ROOT
from tests.mutation.breaking import Mutation, load, shown_in

SAMPLE_MIN = 40
CHAPTERS_MIN = 8


@pytest.mark.parametrize("mutation", load(), ids=lambda each: each.name)
def test_a_mutation_has_exactly_one_place_in_its_file(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.applied(text) != text
    compile(mutation.applied(text), mutation.file, "exec")


def test_every_mutation_is_of_a_row_that_a_test_here_shows() -> None:
    marks = rows.shown_by()
    assert [each.row for each in load() if not shown_in(each.row, marks)] == []


def test_a_test_that_a_mutation_names_is_there() -> None:
    named = {each.test.partition("::")[0] for each in load() if each.test}
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_sample_is_spread_over_the_chapters() -> None:
    sampled = {each.row for each in load()}
    assert len(sampled) >= SAMPLE_MIN
    chapters = [chapter for chapter in rows.load() if sampled & {row.id for row in chapter.rows()}]
    assert len(chapters) >= CHAPTERS_MIN


def test_a_text_that_is_there_twice_or_not_at_all_is_refused() -> None:
    mutation = Mutation(row="X-1", file="a.py", replace="one", by="two", why="it is gone")
    assert mutation.applied("just one") == "just two"
    for text in ("nothing", "one and one"):
        with pytest.raises(ValueError, match=r"X-1: it is gone: a\.py has its text \d times"):
            mutation.applied(text)
