"""The gates, tried on small suites of their own in a pytest inside this one."""

import pytest
from tests import gates
from tests.jdk import Jdk

pytest_plugins = ["pytester"]

SUITE = """
import pytest

@pytest.mark.java
def test_with_java(java):
    pass

@pytest.mark.java
def test_with_java_too(java):
    pass

@pytest.mark.long
def test_for_hours():
    pass

def test_plain():
    pass
"""


INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
markers =
    java
    long
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("CI", "ROCKGATE_BUDGET", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini(INI)
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile(SUITE)
    return pytester


@pytest.fixture
def no_jdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "found_jdk", lambda: None)


def test_without_a_jdk_java_tests_are_skipped_with_one_line_of_advice(
    suite: pytest.Pytester, no_jdk: None
) -> None:
    result = suite.runpytest_inprocess("-ra")
    result.assert_outcomes(passed=1, skipped=2, deselected=1)
    [advice] = [line for line in result.outlines if "no JDK found" in line]
    assert advice.startswith("SKIPPED [2] ")
    assert "install a JDK 17 or 21" in advice


def test_in_ci_a_missing_jdk_is_a_failure(
    suite: pytest.Pytester, no_jdk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    result = suite.runpytest_inprocess()
    result.assert_outcomes(passed=1, errors=2, deselected=1)
    result.stdout.fnmatch_lines(["*no JDK found, and CI=true allows no skip: install a JDK*"])


def test_with_a_jdk_java_tests_run_and_no_advice_is_given(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Jdk(home=suite.path, version=17)
    monkeypatch.setattr(gates, "found_jdk", lambda: found)
    result = suite.runpytest_inprocess()
    result.assert_outcomes(passed=3, deselected=1)
    result.stdout.no_fnmatch_line("*no JDK found*")


def test_the_long_budget_runs_the_long_tests(
    suite: pytest.Pytester, no_jdk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKGATE_BUDGET", "long")
    suite.runpytest_inprocess().assert_outcomes(passed=2, skipped=2)


@pytest.mark.parametrize(("value", "ci"), [("true", True), ("1", True), ("", False), ("no", False)])
def test_ci_is_what_the_variable_says(value: str, ci: bool) -> None:
    assert gates.is_ci({"CI": value}) is ci
