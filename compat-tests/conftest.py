"""What every client's tests share: the gates of tests/gates.py and one server for all of them."""

from collections.abc import Iterator

import pytest
from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup
from tests.gateway.server import RunningServer

# So that a failing assert of a behaviour shows its values.
pytest.register_assert_rewrite("behaviours")

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for all; at the end it must stop cleanly and have no traceback."""
    # A group's first members wait for others: with three seconds that is most of a test's time.
    settings = ["group.initial.rebalance.delay.ms=100"]
    with RunningServer(tmp_path_factory.mktemp("compat"), settings=settings) as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log
