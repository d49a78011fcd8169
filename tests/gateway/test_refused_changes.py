"""A change that cannot be appended changes nothing: whoever tries again finds all as it was.

Every way to change what is folded is tried once with a log that has no room, and then again with
one that has. After the first try nothing may be different; after the second all must be as where
there was no first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import pytest
from tests.gateway.kafka.transactions.ledger import Ledger
from tests.gateway.remoting.halfworld import SYSTEM
from tests.gateway.remoting.world import FakeCaller, send_header

from rockgate.gateway.compose.remoting.services import RemotingFolds
from rockgate.gateway.kafka.groups.classic.group_record import CLASSIC, SavedGroup
from rockgate.gateway.kafka.request.errors import RequestError, code_of
from rockgate.gateway.kafka.transactions.transaction import Offset, Transaction
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.messages.sender import Incoming
from rockgate.gateway.security.delegation.token import Token
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.users import User
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.entry import pack_properties
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.bodies.clients import SubscriptionGroupConfig
from rockgate.store.errors import StoreFull
from rockgate.store.half import Half
from rockgate.store.log.commitlog import Draft
from rockgate.store.progress.progress import Commit, Key
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.state.topics import Topics

SECOND = 1_000
APPENDS = ("append", "append_batch", "append_group", "append_messages")


class Everything(Ledger):
    """A store with every fold of both listeners, and something in each of them."""

    def __init__(self) -> None:
        self.topic_ids = 0
        super().__init__()
        self.topic("orders", 4)
        self.topic("gone", 2)
        for name in SYSTEM:
            self.topic(name, 1)
        self.producer = self.init().producer
        self.add(self.producer, 0, 1)
        self.add_group(self.producer, "ours")
        self.write(self.producer, 0, b"one", b"two")
        self.other = self.init("other").producer
        self.store.progress.commit("group", [Commit(self.id("orders"), 0, 5)])
        self.store.progress.commit("group", [Commit(self.id("gone"), 1, 6)])
        self.folds.groups.save("group", SavedGroup(CLASSIC, 3, "consumer"))
        self.folds.configs.put(32, {"group": {"consumer.session.timeout.ms": "1000"}})
        self.folds.quotas.put({(("user", "a"),): {"producer_byte_rate": 5.0}})
        self.remoting.settings.set(SubscriptionGroupConfig(group_name="group"))
        self.security.users.put({"alice": User(sealed=b"x")})
        self.security.grants.add([_grant("orders")])
        self.security.tokens.put("id", _token("alice"))
        while self.folds.producers.new_id() % 1_000 != 999:
            """Use the block up: the next id takes another."""
        self.half: int = self.prepare()
        self.wait(60 * SECOND)

    def get(self, name: str) -> Topic:
        return self.store.topics.get(name)

    def transaction(self, id_: str) -> Transaction:
        found = self.folds.transactions.find(id_)
        assert found is not None
        return found

    def undecided(self) -> Half:
        found = self.remoting.halves.find(self.half)
        assert found is not None
        return found

    def id(self, name: str) -> bytes:
        return self.store.topics.get(name).id

    def new_topic_id(self) -> bytes:
        self.topic_ids += 1
        return self.topic_ids.to_bytes(16, "big")

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        folds = super().make_folds(journal, topics)
        self.remoting = RemotingFolds.make(journal, topics, self.folds.changed)
        return [*folds, *self.remoting.all()]

    def open(self) -> None:
        super().open()
        self.halves = Halves(
            topics=self.store.topics,
            queues=self.store.queues,
            reader=self.store.reader,
            appender=self.store.appender,
            halves=self.remoting.halves,
            durability=Durability(self.store),
        )

    def prepare(self) -> int:
        """Send a half message; its offset."""
        pairs = {"TRAN_MSG": "true", "PGROUP": "payers", "UNIQ_KEY": "u1"}
        topic = self.store.topics.get("orders")
        incoming = Incoming(
            topic,
            self.store.queue(topic, 3),
            send_header(queue_id=3, sys_flag=4),
            b"half",
            pack_properties(pairs.items()),
            FakeCaller(0),  # type: ignore[arg-type]
        )
        return self.halves.prepare(incoming).offset  # type: ignore[union-attr]  # async flush

    def wait(self, milliseconds: int) -> int:
        """Delay a message; return its offset."""
        queue = self.queue("orders", 2)
        due_ms = self.clock.now_ms() + milliseconds
        draft = Draft(b"", 0, 0, b"later")
        return self.store.deliveries.append(queue, draft, [(0, due_ms)]).offset

    def state(self) -> dict[str, Any]:
        """All that is known: folds, queues, where the log ends, who may be asked next."""
        store = self.store
        return {
            **{
                fold.name: list(fold.snapshot())
                for fold in store.state.folds
                # Epochs carry what is drawn at random.
                if fold.name != "epochs"
            },
            "epochs": [(each.number, each.position) for each in store.epochs.all],
            "queues": [(queue.topic, queue.queue_id, queue.next_offset) for queue in store.queues],
            "end": store.log.end,
            "waiting": (store.delay.waiting_count, store.delay.next_due_ms),
            "unstable": [
                self.folds.stable_offsets.first_of(self.id("orders"), queue_id, self.producer.id)
                for queue_id in range(4)
            ],
            "halves": dict(self.halves.ended_counts),
        }

    @contextmanager
    def full(self) -> Iterator[None]:
        """Have no room in the log meanwhile."""

        def refuse(*arguments: object, **named: object) -> NoReturn:
            raise StoreFull("no space left on device")

        for name in APPENDS:
            setattr(self.store.log, name, refuse)
        try:
            yield
        finally:
            for name in APPENDS:
                delattr(self.store.log, name)


def _new(name: str) -> NewTopic:
    return NewTopic(name=name, queue_count=1)


def _grant(name: str) -> Grant:
    return Grant(
        AclResourceType.TOPIC,
        name,
        PatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        Permission.ALLOW,
    )


def _token(name: str, expires_ms: int = 5) -> Token:
    owner = f"User:{name}"
    return Token(
        owner=owner,
        requester=owner,
        renewers=[],
        issued_ms=1,
        expires_ms=expires_ms,
        ends_ms=9,
        digest=name.encode(),
        is_of_user=False,
    )


ACTS: dict[str, Callable[[Everything], Any]] = {
    "create": lambda w: w.store.topics.create_many([_new("a"), _new("b")]) and None,
    "delete": lambda w: w.store.topics.delete([w.get("gone")]),
    "grow": lambda w: w.store.topics.grow({w.get("orders"): 6}),
    "set queues": lambda w: w.store.topics.set_queues({w.get("orders"): (4, 2)}),
    "set config": lambda w: w.store.topics.set_config({w.get("orders"): {"retention.ms": "9"}}),
    "set permission": lambda w: w.store.topics.set_permission({w.get("orders"): 4}),
    "log start": lambda w: w.store.topics.advance_log_starts({w.get("orders"): {0: 1}}),
    "commit": lambda w: w.store.progress.commit("group", [Commit(w.id("orders"), 0, 8)]),
    "delete groups": lambda w: w.store.progress.delete_groups(["group"]),
    "delete topic": lambda w: w.store.progress.delete_topic("group", w.id("orders")),
    "remove offset": lambda w: w.store.progress.remove([Key("group", w.id("orders"), 0)]),
    "producer id": lambda w: w.folds.producers.new_id(),
    "save group": lambda w: w.folds.groups.save("more", SavedGroup(CLASSIC, 1, "consumer")),
    "remove group": lambda w: w.folds.groups.remove(["group"]),
    "config": lambda w: w.folds.configs.put(32, {"group": {}, "more": {"a": "b"}}),
    "quota": lambda w: w.folds.quotas.put({(("user", "a"),): {}, (("user", "b"),): {"x": 1.0}}),
    "settings": lambda w: w.remoting.settings.set(
        SubscriptionGroupConfig(group_name="group", retry_max_times=3)
    ),
    "broker setting": lambda w: w.folds.changed.put({"topics.message_bytes_max": 9}),
    "feature": lambda w: w.folds.features.put({"share.version": 0}),
    "remove settings": lambda w: w.remoting.settings.remove("group"),
    "user": lambda w: w.security.users.put({"alice": None, "bob": User(sealed=b"y")}),
    "grant": lambda w: w.security.grants.add([_grant("more")]),
    "token": lambda w: w.security.tokens.put("more", _token("bob")),
    "renew token": lambda w: w.security.tokens.put("id", _token("alice", expires_ms=9)),
    "remove token": lambda w: w.security.tokens.remove(["id"]),
    "remove grant": lambda w: w.security.grants.remove([_grant("orders")]),
    "init new": lambda w: w.coordinator.init("fresh", 1_000, None),
    "init again": lambda w: w.coordinator.init("other", 1_000, None),
    "init ongoing": lambda w: w.coordinator.init("tx", 1_000, None),
    "add": lambda w: w.coordinator.add("tx", w.producer, [(w.id("orders"), 3)], ["group"]),
    "begin": lambda w: w.coordinator.add("other", w.other, [(w.id("orders"), 3)]),
    "admit group": lambda w: w.coordinator.admit("tx", w.producer, "group", adds=True),
    "offsets": lambda w: w.coordinator.offsets(
        "tx", w.producer, "ours", [Offset(w.id("orders"), 0, 9, -1, "")]
    ),
    "commit transaction": lambda w: w.coordinator.end("tx", w.producer, True, True),
    "abort transaction": lambda w: w.coordinator.end("tx", w.producer, False, False),
    "time out": lambda w: w.coordinator.time_out(w.transaction("tx")),
    "forget": lambda w: w.coordinator.forget([w.transaction("other")]),
    "half": lambda w: w.prepare(),
    "commit half": lambda w: w.halves.commit(w.half, "payers"),
    "roll back half": lambda w: w.halves.roll_back(w.half, "payers"),
    "give up half": lambda w: w.halves.give_up(w.undecided()),
    "wait": lambda w: w.wait(10),
    "recall": lambda w: w.store.delay.recall(w.id("orders"), 2, 0),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_change_without_room_changes_nothing_and_can_be_made_later(name: str) -> None:
    act = ACTS[name]
    world = Everything()
    before = world.state()
    with world.full():
        for _ in range(2):
            with pytest.raises((StoreFull, RequestError)) as refused:
                act(world)
            assert code_of(refused.value) is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.state() == before
    other = Everything()
    world.topic_ids = other.topic_ids  # some were drawn in vain
    assert act(world) == act(other)
    after = world.state()
    assert after == other.state()
    assert after != before, "it is a change"


def test_a_batch_without_room_is_no_duplicate_when_it_is_sent_again() -> None:
    world = Everything()
    before = world.state()
    with world.full():
        assert world.write(world.producer, 2, b"three") == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.state() == before
    assert world.write(world.producer, 2, b"three") == ErrorCode.NONE
    assert world.queue("orders", 0).next_offset == 3


def test_ids_of_producers_are_never_given_out_twice_whenever_there_is_no_room() -> None:
    world = Everything()
    given: list[int] = []
    for number in range(3):
        with world.full(), suppress(StoreFull):
            given.extend(world.folds.producers.new_id() for _ in range(1_500))
        given += [world.folds.producers.new_id() for _ in range(700 + number)]
    world.kill()
    given.append(world.folds.producers.new_id())
    assert len(set(given)) == len(given)


def test_a_change_of_many_entries_fails_at_any_of_them_with_all_that_went_before_whole() -> None:
    """Ending and beginning anew is two changes: whichever fails, a second try comes to the same."""
    expected = Everything()
    outcome = expected.coordinator.init("tx", 1_000, None)
    for number in range(1, 3):
        world = Everything()
        count = 0
        real = world.store.log.append_group, world.store.log.append

        def failing(kind: int, *arguments: Any, real: Any = real, number: int = number) -> Any:
            nonlocal count
            count += 1
            if count >= number:
                raise StoreFull("no space left on device")
            return real[kind](*arguments)

        world.store.log.append_group = lambda drafts: failing(0, drafts)  # type: ignore[method-assign]
        world.store.log.append = lambda draft: failing(1, draft)  # type: ignore[method-assign]
        with pytest.raises(StoreFull):
            world.coordinator.init("tx", 1_000, None)
        del world.store.log.append_group, world.store.log.append
        producer = world.coordinator.init("tx", 1_000, None)
        assert producer.id == outcome.id and producer.epoch >= outcome.epoch
        assert world.folds.transactions.find("tx") is not None
