from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.gateway.remoting.client import JSON, Client
from tests.gateway.server import RunningServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("remoting")
    with RunningServer(folder, rocketmq=True) as running:
        yield running


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Callable[..., Client]]:
    """Connects to the broker's listener, or another one."""
    made: list[Client] = []

    def dial(listener: str = "remoting", encoding: int = JSON) -> Client:
        made.append(Client(server.address(listener), encoding))
        return made[-1]

    yield dial
    for client in made:
        client.socket.close()


@pytest.fixture
def broker(connect: Callable[..., Client]) -> Client:
    return connect()


@pytest.fixture
def namesrv(connect: Callable[..., Client]) -> Client:
    return connect("namesrv")
