"""Selects the tests to run by their markers: pytest hooks that a conftest imports by name.

- `java` needs a JDK. Without one such tests are skipped, and one line at the end of the run says
  how many and what to install; with CI=true they fail instead, because there the line is not read.
- `long` runs under ROCKGATE_BUDGET=long and is deselected otherwise.
- `row` names the requirement that a test demonstrates; docs/rows.py reads it from the source.
"""

import os
from collections.abc import Mapping
from functools import cache

import pytest
from tests import jdk
from tests.budget import chosen_table


@cache
def found_jdk() -> jdk.Jdk | None:
    """The JDK of this run; searched once, and only if a test needs one."""
    return jdk.find_jdk(os.environ)


def is_ci(environ: Mapping[str, str]) -> bool:
    """Whether this run must not skip."""
    return environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect long tests in a short run."""
    if chosen_table() == "long":
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test that needs a JDK if there is none."""
    if not item.get_closest_marker("java") or found_jdk():
        return
    if is_ci(os.environ):
        pytest.fail(f"no JDK found, and CI=true allows no skip: {jdk.ADVICE}", pytrace=False)
    # Skipped here and not by a marker, so that pytest's summary has one line for all of them.
    pytest.skip(f"no JDK found: {jdk.ADVICE}")


@pytest.fixture(scope="session")
def java() -> jdk.Jdk:
    """The JDK. Only tests marked `java` may request it: for them the gate has checked it."""
    found = found_jdk()
    assert found, "a test that takes the fixture `java` carries the marker `java`"
    return found
