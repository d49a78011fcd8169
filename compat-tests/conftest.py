"""Shared by the tests of all clients: the gates of tests/gates.py, and one server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from bench.peers import KafkaPeer
from suites import PEER_VARIABLE
from tests.gates import java, pytest_collection_modifyitems, pytest_runtest_setup
from tests.gateway.server import RunningServer

if TYPE_CHECKING:
    from behaviours.gateway_peer import GatewayPeer
    from behaviours.secured_server import SecuredServer

# So that a failing assert of a behaviour prints its values.
pytest.register_assert_rewrite("behaviours")

__all__ = ["java", "pytest_collection_modifyitems", "pytest_runtest_setup"]


def pytest_configure(config: pytest.Config) -> None:
    """Have the results of the run written, if requested."""
    from behaviours import recording

    recording.configure(config)


PEER_SETTINGS = {
    "num.partitions": "4",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "8000",
    "group.share.session.timeout.ms": "8000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "8000",
    "group.streams.session.timeout.ms": "8000",
    "group.streams.initial.rebalance.delay.ms": "100",
}


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningServer | KafkaPeer | GatewayPeer]:
    """One server for all; at the end it must stop cleanly, without a traceback."""
    if os.environ.get(PEER_VARIABLE) == "kafka":
        with KafkaPeer(settings=PEER_SETTINGS) as peer:
            yield peer
        return
    if os.environ.get(PEER_VARIABLE) == "gateway":
        from behaviours.gateway_peer import gateway_peer

        with gateway_peer() as over_rocketmq:
            yield over_rocketmq
        return
    # The first members of a group wait for others: three seconds would be most of a test's time.
    # Members of the newer protocols beat as often as the server says.
    settings = [
        "group.initial.rebalance.delay.ms=100",
        "group.consumer.heartbeat.interval.ms=300",
        "group.consumer.session.timeout.ms=8000",
        "group.share.heartbeat.interval.ms=300",
        "group.share.session.timeout.ms=8000",
        "group.streams.heartbeat.interval.ms=300",
        "group.streams.session.timeout.ms=8000",
        "group.streams.initial.rebalance.delay.ms=100",
    ]
    with RunningServer(tmp_path_factory.mktemp("compat"), settings=settings) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(autouse=True)
def left_out_of_gateways(request: pytest.FixtureRequest) -> None:
    """Skip what a gateway to a RocketMQ cluster has not, with the reason."""
    if os.environ.get(PEER_VARIABLE) == "gateway":
        from behaviours.gateway_peer import reason_of

        if (reason := reason_of(request.node)) is not None:
            pytest.skip(reason)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    """One with TLS, logins and grants for all; `rockgate` itself, whatever the peer is."""
    from behaviours.secured_server import secured_server

    with secured_server(tmp_path_factory.mktemp("secured")) as found:
        yield found


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
