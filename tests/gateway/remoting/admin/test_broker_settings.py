"""Settings that are changed while the server runs (25)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.world import World

from rockgate.gateway.compose.config.changeable import changeable_settings
from rockgate.gateway.remoting.admin.broker_settings import (
    BODY_BYTES_MAX,
    CHANGEABLE,
    FIXED,
    BrokerSettings,
)
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.settings.changed import ChangedSettings
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.errors import StoreFull
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics


class SettingsWorld(World):
    """A broker's settings, and what they were changed to."""

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.changed = ChangedSettings(journal, changeable_settings())
        return [self.changed.fold]

    def open(self) -> None:
        super().open()
        self.settings = BrokerSettings(
            configured=RemotingConfig(check_times_max=7),
            overload=OverloadConfig(send_wait_ms_max=300),
            changed=self.changed,
            facts={"brokerName": "here", "flushDiskType": "ASYNC_FLUSH"},
        )
        self.applied: list[RemotingConfig] = []
        self.settings.on_changed.append(self.applied.append)
        self.bounds: list[OverloadConfig] = []
        self.settings.on_overload_changed.append(self.bounds.append)


def test_a_change_is_shown_applied_and_in_the_log() -> None:
    world = SettingsWorld()
    world.settings.change(b"transactionCheckMax=9\nmaxMessageSize=1000\n")
    [config] = world.applied
    assert (config.check_times_max, config.message_bytes_max) == (9, 1000)
    assert world.settings.current()["transactionCheckMax"] == "9"
    world.reopen()
    assert world.settings.current()["maxMessageSize"] == "1000"
    assert world.changed.over(RemotingConfig()).check_times_max == 9


def test_a_switch_is_shown_as_java_writes_it() -> None:
    world = SettingsWorld()
    assert world.settings.current()["useServerSideResetOffset"] == "true"
    world.settings.change(b"useServerSideResetOffset=false")
    world.reopen()
    assert world.settings.current()["useServerSideResetOffset"] == "false"
    assert world.changed.over(RemotingConfig()).server_side_reset is False
    world.settings.change(b"useServerSideResetOffset=true")
    [config] = world.applied
    assert config.server_side_reset is True
    assert world.changed.over(RemotingConfig(server_side_reset=False)).server_side_reset is False


def test_bounds_of_overload_are_changed_apart_from_the_listener_s_settings() -> None:
    world = SettingsWorld()
    assert world.settings.current()["waitTimeMillsInSendQueue"] == "300"
    world.settings.change(b"waitTimeMillsInSendQueue=500\ndisableConsumeIfConsumerReadSlowly=true")
    [bounds] = world.bounds
    assert (bounds.send_wait_ms_max, bounds.slow_groups, bounds.enabled) == (500, True, True)
    assert world.applied == []
    world.kill()
    assert world.settings.current()["waitTimeMillsInSendQueue"] == "500"
    assert world.changed.over(OverloadConfig()).slow_groups
    assert world.changed.over(RemotingConfig()) == RemotingConfig()
    world.settings.change(b"waitTimeMillsInSendQueue=300\ntransactionCheckMax=9")
    assert world.bounds[-1].send_wait_ms_max == 300
    assert world.changed.over(OverloadConfig()).send_wait_ms_max == 200
    assert len(world.applied) == 1


def test_name_servers_are_a_text_that_is_in_the_log_too() -> None:
    world = SettingsWorld()
    assert world.settings.current()["namesrvAddr"] == ""
    world.settings.change(b"namesrvAddr=Here:9876;[::1]:9877\n")
    [config] = world.applied
    assert [str(each) for each in config.name_server_list()] == ["Here:9876", "[::1]:9877"]
    world.kill()
    assert world.settings.current()["namesrvAddr"] == "Here:9876;[::1]:9877"
    world.settings.change(b"namesrvAddr=\n")
    assert world.applied[-1].name_server_list() == []
    assert world.changed.over(RemotingConfig(name_servers="there:1")).name_servers == "there:1"


def test_what_is_set_back_to_the_configured_value_follows_the_configuration_again() -> None:
    world = SettingsWorld()
    world.settings.change(b"transactionCheckMax=9")
    world.settings.change(b"transactionCheckMax=7")
    assert [config.check_times_max for config in world.applied] == [9, 7]
    assert world.changed.over(RemotingConfig(check_times_max=5)).check_times_max == 5


def test_what_is_shown_can_be_sent_back_and_changes_nothing() -> None:
    world = SettingsWorld()
    end = world.store.log.end
    shown = world.settings.current()
    world.settings.change("".join(f"{name}={value}\n" for name, value in shown.items()).encode())
    assert (world.applied, world.store.log.end) == ([], end)


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"flushDiskType=SYNC_FLUSH", 16, "flushDiskType cannot be changed at run time; set store"),
        (b"noSuchSetting=1", 16, "noSuchSetting cannot be changed at run time; those that can are"),
        (b"transactionCheckMax=0", 29, "transactionCheckMax must be a number from 1 to 1,000,000"),
        (b"transactionCheckMax=many", 29, "not 'many'"),
        (b"transactionCheckMax=\xd9\xa3", 29, "must be a number"),
        (b"maxMessageSize=99999999999999999999999", 29, "must be a number"),
        (b"maxMessageSize=-1", 29, "must be a number"),
        (b"maxMessageSize=", 29, "must be a number"),
        (b"namesrvAddr=here", 29, "namesrvAddr must be HOST:PORT"),
        (b"namesrvAddr=here:1;off", 29, "namesrvAddr must have a port after each address"),
        (b"namesrvAddr=" + b"here:1;" * 17, 29, "at most 16 addresses, not 17"),
        (b"useServerSideResetOffset=1", 29, "must be true or false, not '1'"),
    ],
)
def test_one_that_cannot_be_changed_refuses_all(line: bytes, code: int, text: str) -> None:
    world = SettingsWorld()
    end = world.store.log.end
    with pytest.raises(Refused) as refused:
        world.settings.change(b"maxMessageSize=1000\n" + line + b"\n")
    assert refused.value.code == code
    assert text in refused.value.remark
    assert (world.applied, world.store.log.end) == ([], end)


def test_an_append_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SettingsWorld()

    def fail(*_: object) -> None:
        raise StoreFull("no room")

    monkeypatch.setattr(world.changed, "put", fail)
    with pytest.raises(StoreFull):
        world.settings.change(b"maxMessageSize=1000")
    assert world.applied == []
    assert world.settings.current()["maxMessageSize"] == str(RemotingConfig().message_bytes_max)


def test_the_body_has_a_bound() -> None:
    world = SettingsWorld()
    with pytest.raises(Refused, match="the maximum is 65,536"):
        world.settings.change(b"\n" * (BODY_BYTES_MAX + 1))


def test_what_a_later_version_would_not_allow_is_ignored() -> None:
    world = SettingsWorld()
    fold: Any = world.changed.fold
    fold.put({"transactionCheckMax": -5, "goneSetting": 3, "namesrvAddr": "no port"})
    fold.put({"maxMessageSize": "many", "transactionTimeOut": "9"})
    assert world.changed.over(RemotingConfig()) == RemotingConfig()


def test_every_setting_that_can_be_changed_has_bounds_and_no_fixed_one_can() -> None:
    for section in (RemotingConfig(), OverloadConfig()):
        known = [each for each in CHANGEABLE.values() if each.section is type(section)]
        assert known
        for each in known:
            value = getattr(section, each.field)
            assert each.kind is str or each.bounds["minimum"] <= value <= each.bounds["maximum"]
    assert not set(CHANGEABLE) & set(FIXED)


def test_a_running_server_takes_it_at_once_and_after_a_restart(tmp_path: Path) -> None:
    with RunningServer(tmp_path, rocketmq=True) as running:
        client = Client(running.address("remoting"))
        assert client.publish("sized", b"x" * 2_000).code == 0
        changed = b"maxMessageSize=1000\nmaxTransferCountOnMessageInMemory=1\n"
        assert client.ask(25, {}, changed).code == 0
        for _ in range(2):
            assert client.publish("sized", b"x" * 2_000).code == ResponseCode.MESSAGE_ILLEGAL
            assert client.publish("sized", b"small").code == 0
            assert client.pull("sized", maxMsgNums=32).fields["nextBeginOffset"] == "1"
            assert b"maxMessageSize=1000\n" in bytes(client.ask(26).body)
            client.socket.close()
            running.kill()
            running.restart()
            client = Client(running.address("remoting"))
        client.socket.close()
        running.stop_cleanly()
