"""Shared by the tests of all clients: the gates of tests/gates.py, and one server."""

import os
from collections.abc import Iterator

import pytest
from bench.peers import KafkaPeer
from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup
from tests.gateway.server import RunningServer

# So that a failing assert of a behaviour prints its values.
pytest.register_assert_rewrite("behaviours")

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]


def pytest_configure(config: pytest.Config) -> None:
    """Have the results of the run written, if requested."""
    from behaviours import recording

    recording.configure(config)


PEER_VARIABLE = "ROCKGATE_COMPAT_PEER"
"""With `kafka`, tests with a shared server run against Apache Kafka: do they match its behaviour?
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer | KafkaPeer]:
    """One server for all; at the end it must stop cleanly, without a traceback."""
    if os.environ.get(PEER_VARIABLE) == "kafka":
        with KafkaPeer(settings={"num.partitions": "4"}) as peer:
            yield peer
        return
    # The first members of a group wait for others: three seconds would be most of a test's time.
    settings = ["group.initial.rebalance.delay.ms=100"]
    with RunningServer(tmp_path_factory.mktemp("compat"), settings=settings) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(autouse=True, scope="class")
def program(request: pytest.FixtureRequest) -> Iterator[None]:
    """One process for a class of tests whose client is a program."""
    # Not at the top: asserts of modules that are imported too early are not rewritten.
    from behaviours.bringing import CannotRun, leave_out
    from behaviours.program import ProgramDriver

    driver = getattr(request.cls, "driver", None)
    if not isinstance(driver, ProgramDriver):
        yield
        return
    try:
        driver.start()
    except CannotRun as reason:
        leave_out(reason)
    yield
    driver.end()
