"""A real server on a disk that fills up and has room again: what both wires say, over restarts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import messages
from tests.gateway.remoting.popclient import PopClient
from tests.gateway.server import RunningServer, environment
from tests.gateway.test_failed_disk import commit, create, delete, init, produce
from tests.waiting import wait_until

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.codes import ResponseCode

LYING = """
import os
from rockgate.store.files import interface as files

def space(directory):
    with open(os.environ["DISK_HAS_FREE"]) as file:
        return int(file.read()), 1 << 40

files.DiskDirectory.space = space
"""
MUCH = 1 << 39


class Filling:
    """A server that believes its disk to have as much room as a file says."""

    def __init__(self, folder: Path) -> None:
        self._free = folder / "free"
        self.set_free(MUCH)
        patch = folder / "patch"
        patch.mkdir()
        (patch / "sitecustomize.py").write_text(LYING)
        rooms = environment()["PYTHONPATH"]
        self.server = RunningServer(
            folder,
            variables={"PYTHONPATH": f"{patch}:{rooms}", "DISK_HAS_FREE": str(self._free)},
            rocketmq=True,
        )

    def set_free(self, size: int) -> None:
        # Put in place whole: the server reads it at any time.
        aside = self._free.with_suffix(".new")
        aside.write_text(str(size))
        aside.rename(self._free)

    def is_refusing(self) -> bool:
        with RawClient(self.server) as kafka:
            return (
                produce(kafka) is ErrorCode.KAFKA_STORAGE_ERROR
                and commit(kafka) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            )

    def is_taking(self) -> bool:
        with RawClient(self.server) as kafka:
            return produce(kafka) is ErrorCode.NONE and commit(kafka) is ErrorCode.NONE


@pytest.fixture
def filling(tmp_path: Path) -> Iterator[Filling]:
    made = Filling(tmp_path)
    with made.server:
        yield made


@pytest.mark.row("PUT-3")
def test_a_full_disk_refuses_what_writes_over_restarts_and_continues_by_itself(
    filling: Filling,
) -> None:
    server = filling.server
    with RawClient(server) as kafka:
        assert create(kafka, "orders") is ErrorCode.NONE
        assert create(kafka, "spare") is ErrorCode.NONE
    broker = PopClient(server.address("remoting"))
    for _ in range(2):
        assert broker.publish("shop").code == ResponseCode.SUCCESS
    [held] = broker.take("shop", maxMsgNums=1, invisibleTime=600_000)
    assert filling.is_taking()
    filling.set_free(0)
    wait_until(filling.is_refusing, "messages and commits are refused")
    for stop in (lambda: None, server.stop, server.kill):
        if stop() is not None or not server.is_running:
            server.restart()
            broker = PopClient(server.address("remoting"))
        assert filling.is_refusing()
        assert broker.publish("shop").code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert messages(broker.pull("shop"))[0].body == b"hello", "reads continue"
        for answer in (broker.pop("shop"), broker.ack(held), broker.extend(held, 90_000)):
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE, answer
        with RawClient(server) as kafka:
            assert create(kafka, "more") is ErrorCode.KAFKA_STORAGE_ERROR
            assert init(kafka, "transactional") is ErrorCode.COORDINATOR_NOT_AVAILABLE
        broker.socket.close()
    with RawClient(server) as kafka:
        assert delete(kafka, "spare") is ErrorCode.NONE, "who makes room is let in"
    filling.set_free(MUCH)
    wait_until(filling.is_taking, "everything goes on by itself")
    broker = PopClient(server.address("remoting"))
    assert [each.message.queue_offset for each in broker.take("shop")] == [1]
    assert broker.ack(held).code == ResponseCode.SUCCESS
    broker.socket.close()
    assert "Traceback" not in server.log
