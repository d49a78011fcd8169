"""Every mutation of the table is noticed. A minute or several: it runs in `make test-long`."""

import pytest
from tests.mutation.breaking import Mutation, Scratch, Verdict, load


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = Scratch(tmp_path_factory.mktemp("checkout"))
    assert made.passes(each.row for each in load()), "red before anything is broken"
    return made


@pytest.mark.long
@pytest.mark.parametrize("mutation", load(), ids=lambda each: each.name)
def test_the_tests_of_a_row_notice_that_its_feature_is_gone(
    scratch: Scratch, mutation: Mutation
) -> None:
    assert scratch.judge(mutation) is Verdict.RED
