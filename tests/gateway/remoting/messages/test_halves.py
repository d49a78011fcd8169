"""Half messages: docs/internals/half-messages.md, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.budget import budget
from tests.gateway.remoting.client import Client, messages
from tests.gateway.remoting.halfworld import SYSTEM, HalfWorld
from tests.gateway.remoting.world import Noting, NotingWorld
from tests.seeds import seeded
from tests.world import CONFIG, SECOND

from rockgate.gateway.remoting.messages import halves as half_messages
from rockgate.gateway.remoting.messages.check_back import RETRY_MS
from rockgate.gateway.remoting.messages.halves import StoredHalf
from rockgate.gateway.remoting.processors import halves as halves_requests
from rockgate.gateway.remoting.processors.halves import WAITING_MAX, HalfRequests
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.entry import TRANSACTION_COMMIT
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader
from rockgate.store.errors import StoreFull
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

DAY_MS = 86_400_000


@pytest.mark.row("U-11")
@pytest.mark.row("T-01")
@pytest.mark.row("SND-7")
def test_a_half_message_is_seen_by_no_one() -> None:
    world = HalfWorld()
    told = world.prepare(queue=1)
    assert (told.offset, told.queue_id) == (0, 1), "its name, and the queue that was asked for"
    assert world.delivered(queue=0) == world.delivered(queue=1) == []
    assert len(world.undecided) == 1


@pytest.mark.row("T-03")
@pytest.mark.parametrize("remembered", ["from memory", "from the log", "after a restart"])
def test_a_committed_message_is_delivered_as_it_was_sent(
    remembered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if remembered == "from the log":
        monkeypatch.setattr(half_messages, "RECENT_BYTES_MAX", 0)
    world = HalfWorld()
    half = world.prepare(b"paid", queue=1, TAGS="T", KEYS="k", color="blue")
    world.clock.advance(10)
    if remembered == "after a restart":
        world.reopen()
    assert world.halves.commit(half.offset, "payers") is not None
    [message] = world.delivered(queue=1)
    assert (message.body, message.topic, message.queue_id) == (b"paid", "orders", 1)
    assert message.properties == {
        "PGROUP": "payers",
        "UNIQ_KEY": "u1",
        "TAGS": "T",
        "KEYS": "k",
        "color": "blue",
    }
    assert (message.born_ms, message.flag, message.queue_offset) == (5, 9, 0)
    assert message.sys_flag & 12 == TRANSACTION_COMMIT
    assert message.prepared_offset == half.position
    assert len(world.undecided) == 0


def test_only_the_newest_are_remembered_and_all_are_delivered() -> None:
    world = HalfWorld()
    halves = [world.prepare(b"%d" % number) for number in range(half_messages.RECENT_MAX + 5)]
    for half in reversed(halves):
        world.halves.commit(half.offset, "payers")
    bodies = [message.body for message in world.delivered()]
    assert bodies == [b"%d" % number for number in reversed(range(len(halves)))]


@pytest.mark.row("U-11")
@pytest.mark.row("T-04")
def test_a_message_that_was_rolled_back_is_never_delivered() -> None:
    world = HalfWorld()
    half = world.prepare()
    assert world.halves.roll_back(half.offset, "payers")
    world.producer()
    world.pass_time(3_600 * SECOND)
    assert world.delivered() == []


@pytest.mark.row("T-05")
@pytest.mark.parametrize("first", ["commit", "roll back"])
@pytest.mark.parametrize("is_killed", [False, True])
def test_the_first_decision_wins(first: str, is_killed: bool) -> None:
    world = HalfWorld()
    half = world.prepare()
    if first == "commit":
        world.halves.commit(half.offset, "payers")
    else:
        world.halves.roll_back(half.offset, "payers")
    if is_killed:
        world.kill()
    assert world.halves.commit(half.offset, "payers") is None
    assert not world.halves.roll_back(half.offset, "payers")
    assert world.halves.commit(half.offset, "payers") is None
    assert len(world.delivered()) == (first == "commit")


def end(world: HalfWorld, offset: int, decision: int, *, flag: int = 0) -> Any:
    """The answer to 37: 8 commits, 12 rolls back, 0 does not know."""
    header = EndTransactionHeader(
        producer_group="payers",
        tran_state_table_offset=offset,
        commit_log_offset=0,
        commit_or_rollback=decision,
    )
    requests = HalfRequests(
        halves=world.halves,
        lookup=world.lookup,
        durability=Durability(world.store),
        soon=lambda work: work(),
    )
    caller: Any = world.producer()
    return requests.end(Command(37, headers.write(header), flag=flag), caller)


@pytest.mark.parametrize(("first", "second"), [(8, 12), (12, 8)])
@pytest.mark.parametrize("is_killed", [False, True])
def test_who_comes_after_the_opposite_decision_is_told_which_it_was(
    first: int, second: int, is_killed: bool
) -> None:
    world = HalfWorld()
    half = world.prepare()
    assert end(world, half.offset, first).code == ResponseCode.SUCCESS
    if is_killed:
        world.kill()
    answer = end(world, half.offset, second)
    if first == 8:
        assert answer.code == ResponseCode.TRANSACTION_SHOULD_COMMIT
        assert answer.remark == f"Half message {half.offset} has already been committed."
    else:
        assert answer.code == ResponseCode.TRANSACTION_SHOULD_ROLLBACK
        assert answer.remark == f"Half message {half.offset} has already been rolled back."
    assert end(world, half.offset, first).code == ResponseCode.SUCCESS, "the same once more"
    assert end(world, half.offset, 0).code == ResponseCode.SUCCESS, "it decides nothing"
    assert end(world, half.offset, second, flag=ONEWAY_FLAG) == []


@pytest.mark.parametrize("decision", [8, 12])
def test_who_decides_what_was_given_up_is_told_where_it_lies(decision: int) -> None:
    world = HalfWorld(check_times_max=1)
    world.producer()
    half = world.prepare()
    for _ in range(3):
        world.pass_time(30 * SECOND)
    answer = end(world, half.offset, decision)
    assert answer.code == ResponseCode.TRANSACTION_STATE_UNKNOW
    assert "was discarded" in answer.remark and SYSTEM[1] in answer.remark


@pytest.mark.parametrize("decision", [8, 12])
@pytest.mark.parametrize("offset", [-1, 5, 2**62])
def test_who_decides_what_no_one_knows_is_told_so(decision: int, offset: int) -> None:
    world = HalfWorld()
    world.prepare()
    answer = end(world, offset, decision)
    assert answer.code == ResponseCode.TRANSACTION_STATE_UNKNOW
    assert answer.remark == f"Half message {offset} does not exist."


def test_another_group_decides_nothing_and_an_unknown_offset_is_no_error() -> None:
    world = HalfWorld()
    half = world.prepare()
    with pytest.raises(Refused, match="belongs to producer group 'payers', not 'thieves'"):
        world.halves.commit(half.offset, "thieves")
    assert world.halves.commit(77, "payers") is None
    assert len(world.undecided) == 1


def test_without_its_topic_a_half_message_stays_undecided() -> None:
    world = HalfWorld(check_times_max=1)
    half = world.prepare()
    world.store.topics.delete([world.store.topics.get("orders")])
    with pytest.raises(Refused, match="no longer exists"):
        world.halves.commit(half.offset, "payers")
    world.producer()
    world.pass_time(6 * SECOND)
    world.pass_time(30 * SECOND)
    [message] = world.delivered(SYSTEM[1])
    assert message.body == b"half"


@pytest.mark.row("T-13")
@pytest.mark.row("T-11")
@pytest.mark.row("T-12")
@pytest.mark.parametrize(("own", "seconds"), [(None, 6), ("0", 0), ("20", 20), ("-1", 6), ("x", 6)])
def test_the_first_check_comes_when_its_immunity_is_over(own: str | None, seconds: int) -> None:
    world = HalfWorld()
    caller = world.producer()
    if own is None:
        world.prepare()
    else:
        world.prepare(CHECK_IMMUNITY_TIME_IN_SECONDS=own)
    if seconds:
        world.pass_time(seconds * SECOND - 1)
        assert caller.told == []
    world.pass_time(1)
    assert len(caller.told) == 1


@pytest.mark.row("T-14")
def test_a_check_tells_all_that_a_producer_needs_to_answer() -> None:
    world = HalfWorld()
    caller = world.producer()
    world.prepare(b"zero")
    half = world.prepare(b"which?", queue=1, __transactionId__="t9")
    world.pass_time(6 * SECOND)
    [_, (code, fields, message)] = caller.told
    assert code == 39
    assert fields["tranStateTableOffset"] == str(half.offset)
    assert fields["commitLogOffset"] == str(half.position)
    assert (fields["msgId"], fields["transactionId"]) == ("u1", "t9")
    assert (message.body, message.topic, message.queue_id) == (b"which?", "orders", 1)
    assert message.properties["TRANSACTION_CHECK_TIMES"] == "1"
    # And with what it was sent the producer can end it.
    assert world.halves.commit(int(fields["tranStateTableOffset"]), "payers") is not None


def test_checks_come_every_thirty_seconds_from_each_live_producer_in_turn() -> None:
    world = HalfWorld()
    callers = [world.producer(), world.producer(), world.producer("others")]
    callers.append(world.producer())
    callers[3].is_open = False
    world.prepare()
    world.pass_time(6 * SECOND)
    for _ in range(3):
        world.pass_time(30 * SECOND - 1)
        world.pass_time(1)
    assert [len(caller.told) for caller in callers] == [2, 2, 0, 0]
    half = world.undecided.find(0)
    assert half is not None
    assert half.check_count == 4


@pytest.mark.row("T-13")
@pytest.mark.row("T-08")
def test_there_is_no_check_after_the_end() -> None:
    world = HalfWorld()
    caller = world.producer()
    world.prepare(CHECK_IMMUNITY_TIME_IN_SECONDS="8")
    world.pass_time(1 * SECOND)
    world.halves.commit(0, "payers")
    world.pass_time(3_600 * SECOND)
    assert caller.told == []
    assert len(world.delivered()) == 1


@pytest.mark.row("D-08")
@pytest.mark.row("T-10")
def test_after_fifteen_checks_it_is_put_where_people_can_look_at_it() -> None:
    world = HalfWorld()
    caller = world.producer()
    world.prepare(b"lost", queue=1)
    for _ in range(20):
        world.pass_time(30 * SECOND)
    assert len(caller.told) == 15
    [message] = world.delivered(SYSTEM[1])
    assert message.body == b"lost"
    assert message.properties["REAL_TOPIC"] == "orders"
    assert world.halves.commit(0, "payers") is None, "it was given up, and stays so"
    assert world.delivered(queue=1) == []


def test_no_one_to_ask_is_no_check_and_nothing_is_given_up_unchecked() -> None:
    world = HalfWorld()
    world.prepare()
    world.pass_time(200 * 3_600 * SECOND)
    world.pass_time(30 * SECOND)
    half = world.undecided.find(0)
    assert half is not None
    assert half.check_count == 0
    caller = world.producer()
    world.pass_time(30 * SECOND)
    assert len(caller.told) == 1, "it is asked at least once before it is given up"
    world.pass_time(30 * SECOND)
    assert len(world.delivered(SYSTEM[1])) == 1


def test_counts_and_times_continue_after_a_restart() -> None:
    world = HalfWorld()
    world.producer()
    world.prepare()
    world.pass_time(6 * SECOND)
    world.pass_time(20 * SECOND)
    world.kill()
    caller = world.producer()
    world.pass_time(9 * SECOND)
    assert caller.told == []
    world.pass_time(1 * SECOND)
    assert [fields["tranStateTableOffset"] for _, fields, _ in caller.told] == ["0"]
    half = world.undecided.find(0)
    assert half is not None
    assert half.check_count == 2


def test_an_undecided_half_message_outlives_retention() -> None:
    world = HalfWorld()
    world.prepare(b"x" * 1000)
    world.prepare(b"decided")
    world.halves.roll_back(1, "payers")
    assert world.undecided.wants(b"RMQ_SYS_TRANS_HALF_TOPIC", 0, 0, 2)
    assert not world.undecided.wants(b"RMQ_SYS_TRANS_HALF_TOPIC", 0, 1, 9)
    assert not world.undecided.wants(b"orders", 0, 0, 9)


def test_under_sync_flush_the_answer_waits_for_the_whole_group() -> None:
    """Of an atomic group that is not on disk to its end a restart would find nothing."""
    world = NotingHalves(store=replace(CONFIG, flush="sync"))
    world.prepare()
    assert world.noting.waited == [world.store.log.end]


class NotingHalves(NotingWorld, HalfWorld):
    """Half messages, and what their answers wait for."""


@pytest.mark.parametrize("is_sync", [False, True])
def test_whoever_waits_for_a_commit_waits_as_for_a_send_to_that_topic(is_sync: bool) -> None:
    world = NotingHalves()
    config = {"flush.messages": "1"} if is_sync else {}
    world.store.topics.set_config({world.store.topics.get("orders"): config})
    noting = Noting(world.store)
    requests = HalfRequests(
        halves=world.halves, lookup=world.lookup, durability=noting, soon=lambda work: work()
    )

    def end_one(offset: int, flag: int) -> object:
        header = EndTransactionHeader(
            producer_group="payers",
            tran_state_table_offset=offset,
            commit_log_offset=0,
            commit_or_rollback=8,
        )
        command = Command(37, headers.write(header), flag=flag)
        return requests.end(command, world.producer())  # type: ignore[arg-type]

    waited_for, not_waited_for = world.prepare(), world.prepare()
    answer = end_one(waited_for.offset, 0)
    assert isinstance(answer, Command)
    assert answer.code == 0
    assert noting.waited == ([world.store.log.end] if is_sync else [])
    assert end_one(not_waited_for.offset, ONEWAY_FLAG) == [], "nobody is told"
    assert len(noting.waited) == is_sync
    assert len(world.undecided) == 0


# One-way decisions: after the answers of a turn


class Turns:
    """One-way decisions of a producer, carried out turn by turn."""

    def __init__(self) -> None:
        self.world = HalfWorld()
        self.soon: list[Callable[[], None]] = []
        self.requests = HalfRequests(
            halves=self.world.halves,
            lookup=self.world.lookup,
            durability=Durability(self.world.store),
            soon=self.soon.append,
        )
        self.caller: Any = self.world.producer()

    def end(self, offset: int, *, group: str = "payers") -> None:
        header = EndTransactionHeader(
            producer_group=group,
            tran_state_table_offset=offset,
            commit_log_offset=0,
            commit_or_rollback=8,
        )
        command = Command(37, headers.write(header), flag=ONEWAY_FLAG)
        assert self.requests.end(command, self.caller) == []

    def turn(self) -> None:
        soon, self.soon[:] = [*self.soon], []
        for work in soon:
            work()


def test_a_one_way_commit_is_carried_out_in_the_next_turn() -> None:
    turns = Turns()
    first, second = turns.world.prepare(), turns.world.prepare()
    turns.end(first.offset)
    turns.end(second.offset)
    assert turns.world.delivered() == [] and len(turns.soon) == 1
    turns.turn()
    assert len(turns.world.delivered()) == 2
    assert turns.soon == []


def test_one_way_commits_wait_in_bounded_number() -> None:
    turns = Turns()
    halves = [turns.world.prepare() for _ in range(WAITING_MAX + 5)]
    for half in halves:
        turns.end(half.offset)
    assert len(turns.world.undecided) == WAITING_MAX
    while turns.soon:
        turns.turn()
    assert len(turns.world.undecided) == 0


def test_one_way_commits_leave_the_loop_to_others_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns()
    monkeypatch.setattr(halves_requests, "TURN_SECONDS", 0.0)
    for half in [turns.world.prepare() for _ in range(3)]:
        turns.end(half.offset)
    for left in (2, 1, 0):
        turns.turn()
        assert len(turns.world.undecided) == left


def test_the_first_decision_wins_although_it_was_one_way() -> None:
    turns = Turns()
    half, other = turns.world.prepare(), turns.world.prepare()
    turns.end(other.offset)
    turns.end(half.offset)
    header = EndTransactionHeader(
        producer_group="payers",
        tran_state_table_offset=half.offset,
        commit_log_offset=0,
        commit_or_rollback=12,
    )
    answer = turns.requests.end(Command(37, headers.write(header)), turns.caller)
    assert isinstance(answer, Command)
    assert answer.code == ResponseCode.TRANSACTION_SHOULD_COMMIT
    assert [each.offset for each in turns.world.undecided.all()] == [other.offset], "not its turn"


def test_a_one_way_request_that_waits_keeps_no_body() -> None:
    turns = Turns()
    body = bytearray(1 << 20)
    header = EndTransactionHeader(
        producer_group="payers",
        tran_state_table_offset=turns.world.prepare().offset,
        commit_log_offset=0,
        commit_or_rollback=8,
    )
    fields = headers.write(header)
    turns.requests.end(Command(37, fields, memoryview(body), flag=ONEWAY_FLAG), turns.caller)
    body.clear()  # BufferError if anything still refers to it


def test_a_stop_carries_out_what_waits() -> None:
    turns = Turns()
    turns.end(turns.world.prepare().offset)
    turns.requests.finish()
    assert len(turns.world.delivered()) == 1
    turns.turn()
    assert len(turns.world.delivered()) == 1


def test_a_one_way_request_that_cannot_be_read_is_refused_at_once() -> None:
    turns = Turns()
    with pytest.raises(MalformedRequest):
        turns.requests.end(Command(37, {}, flag=ONEWAY_FLAG), turns.caller)


def test_a_one_way_commit_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    half, broken, other = (turns.world.prepare() for _ in range(3))
    turns.end(half.offset, group="strangers")
    turns.end(broken.offset)
    turns.end(other.offset)
    append, refused = turns.world.store.appender.placed_with, [StoreFull("no space")]

    def placed_with(*given: Any) -> Any:
        if refused:
            raise refused.pop()
        return append(*given)

    monkeypatch.setattr(turns.world.store.appender, "placed_with", placed_with)
    turns.turn()
    assert len(turns.world.delivered()) == 1
    assert {each.offset for each in turns.world.undecided.all()} == {half.offset, broken.offset}


# Races: whatever comes in whatever order, each message is delivered once if its first decision
# was a commit, and never else.


def race(world: HalfWorld, random: Random, count: int) -> tuple[dict[bytes, str], list[bytes]]:
    """Decide half messages in random orders; the first decisions, and what was delivered."""
    first: dict[bytes, str] = {}
    bodies: dict[int, bytes] = {}
    caller = world.producer()
    for number in range(count):
        body = b"%d" % number
        half = world.prepare(body)
        bodies[half.offset] = body
        for _ in range(random.randrange(4)):
            offset = random.choice(list(bodies)[-8:])
            what = random.choice(("commit", "roll back", "check"))
            if what == "check":
                world.pass_time(random.choice((1, 7, 31)) * SECOND)
            elif what == "commit":
                world.halves.commit(offset, "payers")
                first.setdefault(bodies[offset], "commit")
            else:
                world.halves.roll_back(offset, "payers")
                first.setdefault(bodies[offset], "roll back")
        for _, fields, message in caller.told:
            assert message.body not in first or not world.undecided.find(
                int(fields["tranStateTableOffset"])
            ), "asked about a decided one"
            # A producer's late answer to the question.
            if random.random() < 0.5:
                world.halves.commit(int(fields["tranStateTableOffset"]), "payers")
                first.setdefault(message.body, "commit")
        caller.told.clear()
    return first, [message.body for message in world.delivered()]


def test_races_of_commit_rollback_and_check_deliver_each_once_at_most() -> None:
    random = seeded()
    decided = 0
    while decided < budget("half_races"):
        world = HalfWorld(check_times_max=10**6)
        first, delivered = race(world, random, 300)
        decided += 300
        assert len(delivered) == len(set(delivered)), "twice"
        assert set(delivered) == {body for body, what in first.items() if what == "commit"}
        world.store.close()


def test_a_power_cut_at_any_write_leaves_each_decided_once_or_not_at_all() -> None:
    random = seeded()
    for _ in range(budget("half_cuts")):
        disk = MemoryDisk(
            crash_at=random.randint(32, 160), crash_keeps=random.choice((0, 1, 50, 200))
        )
        committed: set[bytes] = set()
        rolled_back: set[bytes] = set()
        flushed: tuple[set[bytes], set[bytes]] = (set(), set())
        try:
            world = HalfWorld(disk)
            world.store.flush()
            for number in range(60):
                body = b"%d" % number
                half = world.prepare(body)
                if random.random() < 0.6:
                    world.halves.commit(half.offset, "payers")
                    committed.add(body)
                elif random.random() < 0.5:
                    world.halves.roll_back(half.offset, "payers")
                    rolled_back.add(body)
                if random.random() < 0.3:
                    world.store.flush()
                    flushed = (set(committed), set(rolled_back))
        except PowerCut:
            pass
        world = HalfWorld(disk.power_cut(random))
        delivered = [message.body for message in world.delivered()]
        assert len(delivered) == len(set(delivered))
        assert flushed[0] <= set(delivered)
        undecided = {bytes(world.halves.read(half.offset).body) for half in world.undecided.all()}
        assert not undecided & set(delivered), "delivered, and still to be decided"
        assert not flushed[1] & (undecided | set(delivered))
        world.store.close()


def test_over_the_wire(broker: Client) -> None:
    """What a client sends and reads, as `remoting.md` has it of the real one."""
    broker.ask(34, {}, b'{"clientID":"c","producerDataSet":[{"groupName":"producers"}]}')
    given = {"UNIQ_KEY": "w1", "TRAN_MSG": "true", "PGROUP": "producers"}
    answer = broker.publish("wire-halves", b"first", sys_flag=4, properties=given)
    assert answer.code == 0
    again = broker.publish("wire-halves", b"second", sys_flag=4, properties=given)
    assert messages(broker.pull("wire-halves")) == []
    for each, what, code in ((answer, 8, 0), (again, 12, 0), (answer, 12, 200), (again, 8, 201)):
        fields = {
            "producerGroup": "producers",
            "tranStateTableOffset": each.fields["queueOffset"],
            "commitLogOffset": 0,
            "commitOrRollback": what,
            "fromTransactionCheck": "false",
        }
        assert broker.ask(37, fields).code == code
    assert [message.body for message in messages(broker.pull("wire-halves"))] == [b"first"]
    wrong = {"producerGroup": "x", "tranStateTableOffset": 99, "commitLogOffset": 0}
    assert broker.ask(37, {**wrong, "commitOrRollback": 8}).code == 202, "nothing to decide"


# Checks that fail


def test_a_check_that_cannot_be_written_is_made_again_later() -> None:
    world = HalfWorld(immune_ms=6 * SECOND)
    producer = world.producer()
    world.prepare()
    world.clock.advance(6 * SECOND)
    world.store.appender.state_refusal = StoreFull("no room")
    with pytest.raises(StoreFull):
        world.check_backs.step()
    world.store.appender.state_refusal = None
    told = len(producer.told)
    assert not world.check_backs.step(), "not at once"
    world.clock.advance(RETRY_MS)
    world.check_backs.step()
    assert len(producer.told) == told + 1
    [half] = world.undecided.all()
    assert half.check_count == 1


def test_one_half_message_that_fails_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world = HalfWorld(immune_ms=6 * SECOND)
    producer = world.producer()
    offsets = [world.prepare().offset for _ in range(5)]
    world.clock.advance(6 * SECOND)
    read = world.halves.read

    def reading(offset: int) -> StoredHalf:
        if offset == offsets[1]:
            raise AssertionError("a bug")
        return read(offset)

    monkeypatch.setattr(world.halves, "read", reading)
    with pytest.raises(AssertionError, match="a bug"):
        world.check_backs.step()
    assert len(producer.told) == 4
    assert [half.check_count for half in world.undecided.all()] == [1, 0, 1, 1, 1]
    monkeypatch.undo()
    world.clock.advance(RETRY_MS)
    world.check_backs.step()
    assert [half.check_count for half in world.undecided.all()] == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("is_killed", [False, True])
def test_one_that_came_while_the_clock_was_a_day_ahead_is_checked_in_time(is_killed: bool) -> None:
    world = HalfWorld()
    caller = world.producer()
    world.clock.step(DAY_MS)
    world.prepare()
    world.clock.step(-DAY_MS)
    if is_killed:
        world.kill()
        caller = world.producer()
    for count in (1, 2):
        world.pass_time((6 if count == 1 else 30) * SECOND - 1)
        assert len(caller.told) == count - 1
        world.pass_time(1)
        assert len(caller.told) == count


def test_a_clock_that_is_ahead_for_a_moment_hurries_no_check_and_gives_up_nothing() -> None:
    world = HalfWorld()
    caller = world.producer()
    world.prepare()
    world.pass_time(6 * SECOND)
    world.clock.step(30 * DAY_MS)
    world.pass_time(30 * SECOND - 1)
    assert len(caller.told) == 1
    world.pass_time(1)
    world.clock.step(-30 * DAY_MS)
    world.pass_time(30 * SECOND)
    assert len(caller.told) == 3
    assert world.delivered(SYSTEM[1]) == []
