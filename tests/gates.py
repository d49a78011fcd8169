"""Which tests run, decided from their markers: pytest hooks that a conftest takes by name.

- `java` needs a JDK. Without one such tests are skipped, and one line at the end of the run says
  how many and what to install; with CI=true they fail instead, as there nobody reads that line.
- `long` runs under ROCKGATE_BUDGET=long and is deselected otherwise.
- `row` names the requirement that a test shows; docs/rows.py reads it from the source text.
"""

import os
from collections.abc import Mapping
from functools import cache

import pytest
from tests import jdk
from tests.budget import chosen_table


@cache
def found_jdk() -> jdk.Jdk | None:
    """The JDK of this run; looked for once, and only if some test wants one."""
    return jdk.find_jdk(os.environ)


def is_ci(environ: Mapping[str, str]) -> bool:
    """Whether this run must not skip."""
    return environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out of a short run."""
    if chosen_table() == "long":
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stop a test that needs a JDK where there is none."""
    if not item.get_closest_marker("java") or found_jdk():
        return
    if is_ci(os.environ):
        pytest.fail(f"no JDK found, and CI=true allows no skip: {jdk.ADVICE}", pytrace=False)
    # Skipped here and not by a marker, so that pytest's summary folds them all into one line.
    pytest.skip(f"no JDK found: {jdk.ADVICE}")


@pytest.fixture(scope="session")
def java() -> jdk.Jdk:
    """The JDK to run on. Only tests marked `java` may ask for it: the gate has then been passed."""
    found = found_jdk()
    assert found, "a test that takes the fixture `java` carries the marker `java`"
    return found
