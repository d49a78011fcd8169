"""One server for all tests of the command line."""

from collections.abc import Iterator
from itertools import count

import pytest
from tests.cli.terminal import Terminal
from tests.gateway.server import RunningServer

_numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    # The first members of a group wait for others: three seconds would be most of a test's time.
    settings = ["group.initial.rebalance.delay.ms=50"]
    with RunningServer(tmp_path_factory.mktemp("cli"), settings=settings) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture
def terminal(server: RunningServer) -> Terminal:
    return Terminal(server.bootstrap)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"cli-{next(_numbers)}"
