"""What mqadmin asks a broker besides topics and groups."""

from __future__ import annotations

import json

import pytest
from tests.gateway.remoting.client import Client

from rockgate.protocol.remoting.codes import ResponseCode


def test_settings_are_told_and_not_changed(broker: Client) -> None:
    told = bytes(broker.ask(26).body)
    assert b"brokerName=rockgate\n" in told
    assert broker.ask(25, {}, told).code == 0
    answer = broker.ask(25, {}, b"flushDiskType=SYNC_FLUSH\n")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "flushDiskType is not set while the server runs" in (answer.remark or "")
    assert broker.ask(25, {}, b"\xff=\n").code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize("code", [27, 306, 316, 329])
def test_tidying_up_is_done_by_itself(broker: Client, code: int) -> None:
    assert broker.ask(code).code == 0


def test_all_producers_are_told_by_group(broker: Client) -> None:
    broker.heartbeat("administered", "", "orders")
    table = json.loads(bytes(broker.ask(328).body))["data"]
    [found] = [each for each in table["producers"] if each["clientId"] == "administered"]
    host, port = broker.socket.getsockname()
    assert found["remoteIP"] == f"{host}:{port}"
    assert found["lastUpdateTimestamp"] > 1_700_000_000_000
