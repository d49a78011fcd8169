"""What every client's tests share: the gates of tests/gates.py and one server for all of them."""

import os
from collections.abc import Iterator

import pytest
from bench.peers import KafkaPeer
from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup
from tests.gateway.server import RunningServer

# So that a failing assert of a behaviour shows its values.
pytest.register_assert_rewrite("behaviours")

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]


def pytest_configure(config: pytest.Config) -> None:
    """Have the run's results written, where that is asked for."""
    from behaviours import recording

    recording.configure(config)


PEER_VARIABLE = "ROCKGATE_COMPAT_PEER"
"""With `kafka`, tests that share a server ask Apache Kafka instead: do they expect what it does?"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer | KafkaPeer]:
    """A server for all; at the end it must stop cleanly and have no traceback."""
    if os.environ.get(PEER_VARIABLE) == "kafka":
        with KafkaPeer(settings={"num.partitions": "4"}) as peer:
            yield peer
        return
    # A group's first members wait for others: with three seconds that is most of a test's time.
    settings = ["group.initial.rebalance.delay.ms=100"]
    with RunningServer(tmp_path_factory.mktemp("compat"), settings=settings) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(autouse=True, scope="class")
def program(request: pytest.FixtureRequest) -> Iterator[None]:
    """One process for a class of tests whose client is a program."""
    # Not above: what is imported before its asserts are to be rewritten never has them rewritten.
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
