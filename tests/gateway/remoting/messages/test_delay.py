"""Delayed messages of RocketMQ's clients, from the send to the consumer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.gateway.remoting.client import Client, messages, properties
from tests.gateway.remoting.halfworld import HalfWorld
from tests.gateway.remoting.world import make_delays
from tests.world import SECOND

from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.remoting.messages.recall import make_handle, read_handle
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.entry import MULTI_TAGS, TRANSACTION_COMMIT
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC, TIMES_TOPIC
from rockgate.store.api.append import Draft, Intake
from rockgate.store.api.queues import Queue
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.write.append import Appended

YEAR_MS = 366 * 86_400_000


class DelayWorld(HalfWorld):
    """A store in memory to which delayed messages are sent."""

    def open(self) -> None:
        super().open()
        for name, count in ((LEVELS_TOPIC, 18), (TIMES_TOPIC, 1)):
            if self.store.topics.find(name) is None:
                self.store.topics.create(NewTopic(name=name, queue_count=count, is_internal=True))
        self.delays = make_delays(
            self.store,
            durability=self.durability,
            levels_ms=read_levels(self.remoting.delay_levels),
            delay_ms_max=YEAR_MS,
        )

    def place(self, queue: Queue, draft: Draft) -> list[Intake]:
        return self.delays.place(queue, draft)

    def send(
        self, properties: Mapping[str, str], body: bytes = b"later", queue: int = 1
    ) -> Appended:
        incoming = self.incoming(
            body, properties, queue=queue, sys_flag=MULTI_TAGS, reconsume_times=2
        )
        taken = self.delays.take(incoming)
        assert isinstance(taken, Appended)
        return taken

    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        while self.store.tick():
            pass

    def came(self, queue: int = 1) -> list[bytes]:
        return [bytes(message.body) for message in self.delivered(queue=queue)]


@pytest.fixture
def world() -> DelayWorld:
    return DelayWorld()


@pytest.mark.row("U-12")
@pytest.mark.row("Y-04")
def test_a_due_message_is_in_its_queue_as_it_was_sent_without_its_delay(world: DelayWorld) -> None:
    told = world.send({"DELAY": "2", "TAGS": "T", "KEYS": "k", "UNIQ_KEY": "u"}, queue=1)
    assert told.queue_id == 1
    [waiting] = world.delivered(LEVELS_TOPIC, 1)
    assert (waiting.properties["REAL_TOPIC"], waiting.properties["REAL_QID"]) == ("orders", "1")
    world.pass_time(5 * SECOND - 1)
    assert world.came() == []
    world.pass_time(1)
    [message] = world.delivered(queue=1)
    origin = message.properties.pop("__ORIGIN")
    assert origin.endswith(":1:0")
    assert message.properties == {"TAGS": "T", "KEYS": "k", "UNIQ_KEY": "u", "WAIT": "false"}
    assert (message.body, message.born_ms, message.flag) == (b"later", 5, 9)
    assert (message.sys_flag & 0xFFFF, message.reconsume_times) == (MULTI_TAGS, 2)


@pytest.mark.row("S-12")
@pytest.mark.parametrize(
    ("level", "delay_ms"), [("1", 1_000), ("18", 7_200_000), ("99", 7_200_000)]
)
def test_a_level_is_its_time_and_above_the_last_the_last(
    world: DelayWorld, level: str, delay_ms: int
) -> None:
    world.send({"DELAY": level})
    world.pass_time(delay_ms - 1)
    assert world.came() == []
    world.pass_time(1)
    assert world.came() == [b"later"]


@pytest.mark.row("S-05")
def test_the_list_of_levels_can_be_set() -> None:
    world = DelayWorld(delay_levels="2s 3m 1h 4d")
    for level, delay_ms in (("1", 2_000), ("2", 180_000), ("3", 3_600_000), ("4", 345_600_000)):
        before = len(world.came())
        world.send({"DELAY": level})
        world.pass_time(delay_ms - 1)
        assert len(world.came()) == before
        world.pass_time(1)
        assert len(world.came()) == before + 1


@pytest.mark.parametrize(
    ("name", "value", "delay_ms"),
    [
        ("TIMER_DELAY_MS", "1500", 1_500),
        ("TIMER_DELAY_SEC", "90", 90_000),
        ("TIMER_DELIVER_MS", None, 31_000),
        ("__STARTDELIVERTIME", None, 31_000),
        ("TIMER_DELIVER_MS", "5", 0),
        ("TIMER_DELAY_MS", "-5", 0),
    ],
)
def test_any_time_may_be_asked_for(
    world: DelayWorld, name: str, value: str | None, delay_ms: int
) -> None:
    due_ms = world.clock.now_ms() + delay_ms
    world.send({name: value or str(due_ms)})
    if delay_ms:
        world.pass_time(delay_ms - 1)
        assert world.came() == []
        world.pass_time(1)
    else:
        world.pass_time(0)
    assert world.came() == [b"later"]


def test_a_level_counts_before_a_time_and_level_0_is_none(world: DelayWorld) -> None:
    world.send({"DELAY": "1", "TIMER_DELAY_MS": "900000"}, b"level")
    world.send({"DELAY": "0"}, b"now")
    assert world.came() == [b"now"]
    world.pass_time(SECOND)
    assert world.came() == [b"now", b"level"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DELAY", "soon"),
        ("TIMER_DELAY_MS", ""),
        ("TIMER_DELAY_SEC", "1_0"),
        ("TIMER_DELIVER_MS", "9" * 19),
        ("TIMER_DELAY_MS", str(YEAR_MS + 1)),
    ],
)
def test_a_delay_that_makes_no_sense_is_refused_and_nothing_stored(
    world: DelayWorld, name: str, value: str
) -> None:
    end = world.store.log.end
    with pytest.raises(Refused):
        world.send({name: value})
    assert world.store.log.end == end


@pytest.mark.row("S-04")
@pytest.mark.row("Y-02")
def test_a_kill_neither_forgets_nor_repeats(world: DelayWorld) -> None:
    for number in range(5):
        world.send({"DELAY": "1"}, b"%d" % number)
    world.kill()
    world.pass_time(SECOND)
    world.kill()
    world.pass_time(SECOND)
    assert world.came() == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("is_made_in_time", [True, False])
@pytest.mark.parametrize("is_killed", [True, False])
def test_what_waits_for_a_deleted_topic_is_not_for_another_of_its_name(
    world: DelayWorld, is_made_in_time: bool, is_killed: bool
) -> None:
    world.send({"DELAY": "1"})
    world.store.topics.delete([world.store.topics.get("orders")])
    if not is_made_in_time:
        world.pass_time(SECOND)
    world.store.topics.create(NewTopic(name="orders", queue_count=1))
    if is_killed:
        world.kill()
    world.pass_time(60 * SECOND)
    assert world.came(queue=0) == []
    assert world.store.delay.waiting_count == 0
    assert world.store.deliveries.dropped_count == (1 if is_made_in_time or not is_killed else 0)
    world.send({"DELAY": "1"}, b"for the new one", queue=0)
    world.pass_time(SECOND)
    assert world.came(queue=0) == [b"for the new one"]


@pytest.mark.row("S-12")
def test_a_half_message_is_delayed_from_its_commit_on(world: DelayWorld) -> None:
    half = world.prepare(b"half", queue=1, DELAY="1")
    world.pass_time(60 * SECOND)
    assert world.came() == []
    assert world.halves.commit(half.offset, "payers") is not None
    world.pass_time(SECOND - 1)
    assert world.came() == []
    world.pass_time(1)
    [message] = world.delivered(queue=1)
    assert (message.body, message.sys_flag & 12) == (b"half", TRANSACTION_COMMIT)


@pytest.mark.row("SEC-2")
@pytest.mark.parametrize("delay", [{"DELAY": "1"}, {"TIMER_DELAY_MS": "1000"}])
@pytest.mark.parametrize("is_half", [False, True])
def test_a_destination_that_the_client_states_is_ignored(
    world: DelayWorld, delay: dict[str, str], is_half: bool
) -> None:
    """It may write to the topic that it sends to, and to no other."""
    world.store.topics.create(NewTopic(name="secret", queue_count=1))
    stated = {"REAL_TOPIC": "secret", "REAL_QID": "0", **delay}
    if is_half:
        half = world.prepare(b"mine", queue=1, **stated)
        assert world.halves.commit(half.offset, "payers") is not None
    else:
        world.send(stated, b"mine", queue=1)
    world.pass_time(60 * SECOND)
    [message] = world.delivered(queue=1)
    assert (message.body, message.properties.get("REAL_TOPIC")) == (b"mine", None)
    assert world.delivered("secret", 0) == []


# Over the wire


def test_a_delayed_message_comes_to_a_consumer_that_waits(broker: Client) -> None:
    assert broker.publish("delayed", b"first").code == 0
    sent = broker.publish(
        "delayed", b"second", properties={"UNIQ_KEY": "u1", "TIMER_DELAY_MS": "200"}
    )
    assert (sent.code, sent.fields["queueId"]) == (0, "0")
    assert broker.pull("delayed", 1).code == ResponseCode.PULL_NOT_FOUND
    pulled = broker.pull("delayed", 1, sysFlag=6, suspendTimeoutMillis=20_000)
    [message] = messages(pulled)
    assert (message.body, message.queue_offset) == (b"second", 1)


def recall(broker: Client, topic: str, handle: str) -> Command:
    return broker.ask(370, {"producerGroup": "producers", "topic": topic, "recallHandle": handle})


def test_a_message_is_taken_back_by_the_handle_of_its_send(broker: Client) -> None:
    given = {"UNIQ_KEY": "u2", "TIMER_DELAY_SEC": "3600"}
    handle = broker.publish("recalled", b"regretted", properties=given).fields["recallHandle"]
    other = broker.publish("recalled", b"kept", properties={**given, "UNIQ_KEY": "u3"})
    assert recall(broker, "other", handle).code == ResponseCode.ILLEGAL_OPERATION
    recalled = recall(broker, "recalled", handle)
    assert (recalled.code, recalled.fields["msgId"]) == (0, "u2")
    again = recall(broker, "recalled", handle)
    assert (again.code, again.remark) == (
        ResponseCode.ILLEGAL_OPERATION,
        "recall failed, the message has been delivered or recalled",
    )
    forged = read_handle(other.fields["recallHandle"])
    assert forged is not None
    made = make_handle(
        "recalled", "rockgate", properties({**given, "UNIQ_KEY": "u9"}), forged.offset, 0
    )
    assert made is not None
    assert recall(broker, "recalled", made).code == ResponseCode.ILLEGAL_OPERATION
    assert recall(broker, "recalled", "nonsense").code == ResponseCode.ILLEGAL_OPERATION


def test_a_message_by_level_has_no_handle(broker: Client) -> None:
    sent = broker.publish("levels", properties={"UNIQ_KEY": "u4", "DELAY": "18"})
    assert (sent.code, "recallHandle" in sent.fields) == (0, False)
