"""A server, and a broker and a topic for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.gateway.server import RunningServer
from tests.sdk.faststream.applications import BEGINNING, numbers, send

from rockgate.sdk.faststream import RocketBroker


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.delay_levels=1s 1s 1s 2s"]
    with RunningServer(
        tmp_path_factory.mktemp("faststream"), settings=settings, rocketmq=True
    ) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    return "{}:{}".format(*server.address("namesrv"))


@pytest.fixture
async def topic(name_server: str) -> str:
    """A topic of the test's own, with one message that no handler here subscribes to."""
    name = f"orders-{next(numbers)}"
    await send(name_server, name, b"makes the topic", tag="setup")
    return name


@pytest.fixture
def broker(name_server: str) -> RocketBroker:
    return RocketBroker(name_server, group=f"shop-{next(numbers)}", settings=BEGINNING)
