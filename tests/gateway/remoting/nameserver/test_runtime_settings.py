"""Settings of the name server that are changed while it runs (318)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer

from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.nameserver.runtime_settings import (
    BODY_BYTES_MAX,
    CHANGEABLE,
    RuntimeSettings,
)
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode


async def test_a_change_is_on_disk_and_a_default_is_no_change(tmp_path: Path) -> None:
    settings = RuntimeSettings(KeyValues(tmp_path))
    before = settings.current()
    await settings.change(b"orderMessageEnable=true\nenableTopicList=false\nrocketmqHome=\n")
    assert settings.is_on("orderMessageEnable") and not settings.is_on("enableTopicList")
    again = RuntimeSettings(KeyValues(tmp_path))
    assert again.current() == {
        **before,
        "orderMessageEnable": "true",
        "enableTopicList": "false",
    }
    await again.change("".join(f"{name}={value}\n" for name, value in before.items()).encode())
    assert RuntimeSettings(KeyValues(tmp_path)).current() == before


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"clusterTest=true", 16, "clusterTest cannot be changed at run time; those that can are"),
        (b"rocketmqHome=/x", 16, "rocketmqHome cannot be changed"),
        (b"enableTopicList=no", 29, "enableTopicList must be true or false, not 'no'"),
        (b"\n" * BODY_BYTES_MAX, 29, "the maximum is 65,536"),
    ],
)
async def test_one_that_cannot_be_changed_refuses_all(
    tmp_path: Path, line: bytes, code: int, text: str
) -> None:
    settings = RuntimeSettings(KeyValues(tmp_path))
    with pytest.raises(Refused) as refused:
        await settings.change(b"orderMessageEnable=true\n" + line)
    assert refused.value.code == code
    assert text in refused.value.remark
    assert not settings.is_on("orderMessageEnable")


async def test_what_cannot_be_stored_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = KeyValues(tmp_path / "file")
    (tmp_path / "file").write_text("in the way of the folder")
    settings = RuntimeSettings(kv)
    with pytest.raises(OSError):
        await settings.change(b"orderMessageEnable=true")
    assert not settings.is_on("orderMessageEnable")


def test_each_setting_has_its_effect_at_once_and_after_a_restart(tmp_path: Path) -> None:
    with RunningServer(tmp_path, rocketmq=True) as server:
        broker, namesrv = Client(server.address("remoting")), Client(server.address("namesrv"))
        assert broker.publish("ordered").code == 0
        place = {"namespace": "ORDER_TOPIC_CONFIG", "key": "ordered"}
        assert namesrv.ask(100, {**place, "value": "rockgate:4"}).code == 0

        def found() -> tuple[object, int, int]:
            route = json.loads(bytes(namesrv.ask(105, {"topic": "ordered"}).body))
            cluster = {"cluster": "DefaultCluster"}
            return (
                route.get("orderTopicConf"),
                namesrv.ask(206).code,
                namesrv.ask(224, cluster).code,
            )

        assert found() == (None, 0, 0)
        turned = "".join(f"{name}={str(not on).lower()}\n" for name, on in CHANGEABLE.items())
        assert namesrv.ask(318, {}, turned.encode()).code == 0
        refused = ResponseCode.SYSTEM_ERROR
        assert found() == ("rockgate:4", refused, refused)
        assert "enableAllTopicList=false" in (namesrv.ask(206).remark or "")
        for each in (broker, namesrv):
            each.socket.close()
        server.kill()
        server.restart()
        namesrv = Client(server.address("namesrv"))
        assert found() == ("rockgate:4", refused, refused)
        namesrv.socket.close()
        server.stop_cleanly()
