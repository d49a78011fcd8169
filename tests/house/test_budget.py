import pytest
from tests import budget as subject
from tests.budget import budget


def test_short_is_the_default_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKGATE_BUDGET", raising=False)
    assert budget("fuzz_rounds") == subject.counts()["short"]["fuzz_rounds"]


def test_the_environment_chooses_the_long_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKGATE_BUDGET", "long")
    assert budget("fuzz_rounds") == subject.counts()["long"]["fuzz_rounds"]


def test_an_unknown_table_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKGATE_BUDGET", "lng")
    with pytest.raises(ValueError, match="ROCKGATE_BUDGET='lng' names no table"):
        budget("fuzz_rounds")


def test_a_missing_count_says_which_file_to_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKGATE_BUDGET", raising=False)
    with pytest.raises(KeyError, match=r"no count 'no_such' in \[short\].*tests/budget\.toml"):
        budget("no_such")


def test_both_tables_have_the_same_keys_and_long_is_never_the_smaller() -> None:
    tables = subject.counts()
    assert set(tables) == set(subject.TABLES)
    assert tables["short"].keys() == tables["long"].keys()
    for name, short in tables["short"].items():
        assert type(short) is int
        assert 0 < short <= tables["long"][name], name
