"""Numbers of half messages that are upstream's, and those that are not."""

import pytest
from tests.gateway.remoting.client import Client, messages
from tests.gateway.remoting.halfworld import HalfWorld
from tests.world import SECOND

from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.protocol.remoting.codes import ResponseCode


@pytest.mark.row("U-13")
def test_checks_begin_after_six_seconds_and_come_every_thirty_fifteen_times() -> None:
    config = RemotingConfig()
    assert (config.immune_ms, config.check_interval_ms) == (6_000, 30_000)
    assert config.check_times_max == 15
    world = HalfWorld()
    caller = world.producer()
    world.prepare()
    world.pass_time(6 * SECOND)
    assert len(caller.told) == 1
    world.pass_time(30 * SECOND - 1)
    assert len(caller.told) == 1
    world.pass_time(1)
    assert len(caller.told) == 2


@pytest.mark.row("U-13")
def test_a_half_message_is_ended_by_group_and_offset_and_its_position_does_not_count(
    broker: Client,
) -> None:
    given = {"UNIQ_KEY": "w1", "TRAN_MSG": "true", "PGROUP": "producers"}
    half = broker.publish("by-offset", b"half", sys_flag=4, properties=given)
    [waiting] = messages(broker.pull("RMQ_SYS_TRANS_HALF_TOPIC", int(half.fields["queueOffset"])))
    assert waiting.properties["REAL_TOPIC"] == "by-offset"
    assert waiting.properties["REAL_QID"] == "0"
    fields = {
        "producerGroup": "strangers",
        "tranStateTableOffset": half.fields["queueOffset"],
        "commitLogOffset": 12_345,
        "commitOrRollback": 8,
    }
    assert broker.ask(37, fields).code == ResponseCode.SYSTEM_ERROR
    assert messages(broker.pull("by-offset")) == []
    assert broker.ask(37, {**fields, "producerGroup": "producers"}).code == 0
    assert [message.body for message in messages(broker.pull("by-offset"))] == [b"half"]
