import os

import pytest
from hypothesis import HealthCheck, settings
from tests.gates import is_ci
from tests.seeds import chosen_seed, seeded

HERE = {"PYTEST_CURRENT_TEST": "tests/crash/test_kill.py::test_it[sync] (call)"}
CI = {**HERE, "CI": "true"}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKGATE_BUDGET", raising=False)


def test_a_seed_that_is_given_counts_everywhere() -> None:
    for environ in (HERE, CI):
        assert chosen_seed({**environ, "ROCKGATE_SEED": "698906722"}) == 698906722


def test_ci_has_the_same_seed_for_a_test_every_time() -> None:
    assert chosen_seed(CI) == 3795886219
    for phase in ("setup", "teardown"):
        name = CI["PYTEST_CURRENT_TEST"].replace("call", phase)
        assert chosen_seed({**CI, "PYTEST_CURRENT_TEST": name}) == chosen_seed(CI)


def test_ci_has_other_seeds_for_other_tests() -> None:
    names = [f"tests/crash/test_kill.py::test_it[{flush}] (call)" for flush in ("sync", "async")]
    names.append("tests/crash/test_kill.py::test_that (call)")
    assert len({chosen_seed({**CI, "PYTEST_CURRENT_TEST": name}) for name in names}) == 3


def test_everywhere_else_each_run_has_a_new_seed() -> None:
    assert len({chosen_seed(HERE) for _ in range(5)}) == 5


def test_a_long_run_has_a_new_seed_under_ci_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKGATE_BUDGET", "long")
    assert len({chosen_seed(CI) for _ in range(5)}) == 5


def test_the_seed_is_written_and_repeats_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ROCKGATE_SEED", raising=False)
    drawn = seeded().random()
    name, seed = capsys.readouterr().out.strip().split("=")
    monkeypatch.setenv(name, seed)
    assert seeded().random() == drawn


def test_under_ci_the_running_test_draws_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKGATE_SEED", raising=False)
    monkeypatch.setenv("CI", "true")
    assert seeded().random() == seeded().random()


def test_no_property_fails_because_a_machine_is_slow() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


def test_under_ci_every_property_has_the_same_examples_each_time() -> None:
    assert settings.default is not None
    assert settings.default.derandomize or not is_ci(os.environ)
