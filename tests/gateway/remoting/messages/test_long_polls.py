"""Pulls that wait: bounded for a connection and in all, and cheap for whoever appends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.measure.procfs import anonymous_bytes
from tests.gateway.remoting.client import Client, messages
from tests.gateway.remoting.world import FakeCaller
from tests.gateway.server import RunningServer

from rockgate.gateway.remoting.messages.long_polls import POLL_BYTES, LongPolls
from rockgate.protocol.remoting.codes import ResponseCode

SUSPEND = 2 | 4
EACH = 500
REQUEST_BYTES = 500


def callers() -> tuple[Any, Any]:
    return FakeCaller(1), FakeCaller(2)


def test_a_connection_has_so_many_and_others_have_theirs() -> None:
    polls, (one, other) = LongPolls(connection_max=2, bytes_max=1 << 20), callers()
    assert polls.begin(one, 100) is None
    assert polls.begin(one, 100) is None
    assert "Connection has 2 suspended pulls" in (polls.begin(one, 100) or "")
    assert polls.begin(other, 100) is None
    polls.end(one, 100)
    assert polls.begin(one, 100) is None


def test_all_of_them_hold_so_much() -> None:
    polls, (one, other) = LongPolls(connection_max=9, bytes_max=3 * POLL_BYTES), callers()
    assert polls.begin(one, 100) is None
    assert polls.begin(other, POLL_BYTES) is not None, "a large request holds more"
    assert polls.begin(other, 100) is None
    assert "2 suspended pulls use" in (polls.begin(one, 100) or "")
    polls.end(one, 100)
    polls.end(other, 100)
    assert (polls.count, polls.size) == (0, 0)
    assert polls.begin(one, 100) is None


@pytest.mark.row("M-04")
def test_one_too_many_is_told_that_the_server_is_busy_and_those_that_wait_continue(
    tmp_path: Path,
) -> None:
    settings = ["remoting.waiting_pulls_max=3"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        reader, writer = Client(server.address("remoting")), Client(server.address("remoting"))
        assert writer.publish("crowded").code == 0
        waits = {"sysFlag": SUSPEND, "suspendTimeoutMillis": 60_000}
        waiting = [reader.begin_pull("crowded", 1, **waits) for _ in range(3)]
        refused = reader.pull("crowded", 1, **waits)
        assert refused.code == ResponseCode.SYSTEM_BUSY
        assert "remoting.waiting_pulls_max" in (refused.remark or "")
        assert reader.pull("crowded", 0, **waits).code == 0, "what need not wait is answered"
        writer.publish("crowded", b"news")
        for opaque in waiting:
            assert [message.body for message in messages(reader.answer(opaque))] == [b"news"]
        again = reader.begin_pull("crowded", 2, **waits)
        writer.publish("crowded", b"more")
        assert reader.answer(again).code == 0, "there is room again"
        reader.socket.close()
        writer.socket.close()


def test_a_pull_that_waits_holds_about_what_it_is_counted_for(tmp_path: Path) -> None:
    with RunningServer(tmp_path, rocketmq=True) as server:
        clients = [Client(server.address("remoting")) for _ in range(10)]
        assert clients[0].publish("quiet").code == 0
        waits = {"sysFlag": SUSPEND, "suspendTimeoutMillis": 60_000}
        # What the first ones need is there for all.
        for client in clients:
            client.begin_pull("quiet", 1, **waits)
            assert client.pull("quiet", 0).code == 0
        before = anonymous_bytes(server.pid)
        for client in clients:
            for _ in range(EACH):
                client.begin_pull("quiet", 1, **waits)
            assert client.pull("quiet", 0).code == 0
        each = (anonymous_bytes(server.pid) - before) / (len(clients) * EACH)
        for client in clients:
            client.socket.close()
        assert each < POLL_BYTES + REQUEST_BYTES
        assert server.stop() == 0
