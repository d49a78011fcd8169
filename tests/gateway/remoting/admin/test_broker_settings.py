"""Settings that are changed while the server runs (25)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.world import World

from rockgate.gateway.remoting.admin.broker_settings import (
    BODY_BYTES_MAX,
    CHANGEABLE,
    FIXED,
    BrokerSettings,
    ChangedSettings,
)
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.errors import StoreFull
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics


class SettingsWorld(World):
    """A broker's settings, and what they were changed to."""

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.changed = ChangedSettings(journal)
        return [self.changed.fold]

    def open(self) -> None:
        super().open()
        self.settings = BrokerSettings(
            configured=RemotingConfig(check_times_max=7),
            changed=self.changed,
            facts={"brokerName": "here", "flushDiskType": "ASYNC_FLUSH"},
        )
        self.applied: list[RemotingConfig] = []
        self.settings.on_changed.append(self.applied.append)


def test_a_change_is_shown_applied_and_in_the_log() -> None:
    world = SettingsWorld()
    world.settings.change(b"transactionCheckMax=9\nmaxMessageSize=1000\n")
    [config] = world.applied
    assert (config.check_times_max, config.message_bytes_max) == (9, 1000)
    assert world.settings.current()["transactionCheckMax"] == "9"
    world.reopen()
    assert world.settings.current()["maxMessageSize"] == "1000"
    assert world.changed.over(RemotingConfig()).check_times_max == 9


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
    world.changed.put({"transactionCheckMax": -5, "goneSetting": 3})
    assert world.changed.over(RemotingConfig()) == RemotingConfig()


def test_every_setting_that_can_be_changed_has_bounds_and_no_fixed_one_can() -> None:
    config = RemotingConfig()
    assert all(isinstance(getattr(config, field), int) for field in CHANGEABLE.values())
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
