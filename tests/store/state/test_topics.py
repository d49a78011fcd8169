"""Topics: their lives, changes and lookups, against a model made of dicts."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.budget import budget
from tests.store.journals import MemoryJournal

from rockgate.store.errors import (
    InvalidTopic,
    OffsetOutOfRange,
    StoreFull,
    TopicExists,
    UnknownQueue,
    UnknownTopic,
)
from rockgate.store.state.topics import NewTopic, Topic, Topics


def counted_ids() -> Callable[[], bytes]:
    numbers = itertools.count(1)
    return lambda: next(numbers).to_bytes(16, "big")


def made(*names: str, queue_count: int = 4) -> tuple[MemoryJournal, Topics]:
    journal = MemoryJournal()
    topics = Topics(journal, new_id=counted_ids())
    journal.attach(topics)
    topics.create_many([NewTopic(name=name, queue_count=queue_count) for name in names])
    return journal, topics


def replayed(journal: MemoryJournal) -> Topics:
    topics = Topics(MemoryJournal())
    journal.replay(MemoryJournal().attach(topics), 0)
    return topics


# Lives


@pytest.mark.row("MODEL-3")
def test_a_topic_is_found_by_name_and_by_id_with_all_it_was_created_with() -> None:
    _, topics = made()
    topic = topics.create(
        NewTopic(name="orders", queue_count=8, config={"k": "v"}, permission=4, is_internal=True)
    )
    assert topics.find("orders") is topics.find_id(topic.id) is topics.get("orders") is topic
    assert (topic.name, topic.encoded, topic.queue_count) == ("orders", b"orders", 8)
    assert (topic.read_queues, topic.write_queues, topic.permission) == (8, 8, 4)
    assert (topic.config, topic.is_internal) == ({"k": "v"}, True)


def test_an_unknown_topic_is_none_or_an_error_as_the_caller_likes() -> None:
    _, topics = made("a")
    assert topics.find("b") is topics.find_id(bytes(16)) is None
    with pytest.raises(UnknownTopic, match=r"Topic 'b' does not exist\."):
        topics.get("b")


def test_a_name_is_taken_once() -> None:
    journal, topics = made("a")
    end = journal.end
    with pytest.raises(TopicExists, match=r"Topic 'a' already exists\."):
        topics.create(NewTopic(name="a", queue_count=1))
    assert journal.end == end


def test_of_many_topics_all_are_created_or_none() -> None:
    journal, topics = made("a")
    end = journal.end
    for bad, error in (("a", TopicExists), ("b", TopicExists), ("/", InvalidTopic)):
        with pytest.raises(error):
            topics.create_many([NewTopic(name=name, queue_count=1) for name in ("b", bad)])
    assert (journal.end, len(topics)) == (end, 1)


def test_ten_thousand_topics_are_created_by_one_entry() -> None:
    journal, topics = made(*(f"topic-{number}" for number in range(10_000)))
    assert (len(topics), journal.group_sizes) == (10_000, [1])


def test_what_needs_several_entries_is_one_atomic_group() -> None:
    journal, topics = made(*(f"topic-{number:0200d}" for number in range(10_000)))
    assert journal.group_sizes == [4]
    topics.delete(topics)
    assert (len(topics), journal.group_sizes) == (0, [4, 1])


def test_an_entry_that_cannot_be_appended_changes_nothing() -> None:
    journal, topics = made("a")
    journal.failure = StoreFull("no space left on device")
    with pytest.raises(StoreFull):
        topics.create(NewTopic(name="b", queue_count=1))
    with pytest.raises(StoreFull):
        topics.delete([topics.get("a")])
    assert [topic.name for topic in topics] == ["a"]


def test_a_name_created_again_is_another_topic() -> None:
    _, topics = made("a")
    first = topics.get("a")
    topics.advance_log_starts({first: {0: 100}})
    topics.delete([first])
    second = topics.create(NewTopic(name="a", queue_count=1))
    assert second.id != first.id
    assert second.created_position > first.created_position
    assert (second.log_start(0), topics.find_id(first.id)) == (0, None)


def test_a_log_entry_belongs_to_the_life_it_was_written_in() -> None:
    journal, topics = made("a")
    in_first_life = journal.end
    topics.delete([topics.get("a")])
    assert topics.owner(b"a", in_first_life) is None
    second = topics.create(NewTopic(name="a", queue_count=1))
    assert topics.owner(b"a", in_first_life) is None
    assert topics.owner(b"a", journal.end) is second
    assert topics.owner(b"\xff", journal.end) is None


def test_an_earlier_life_does_not_come_back_by_replay_nor_by_snapshot() -> None:
    journal, topics = made("a", "b")
    slices = topics.snapshot()
    early = next(slices)
    topics.delete([topics.get("a")])
    second = topics.create(NewTopic(name="a", queue_count=1))
    late = next(topics.snapshot())
    for restored in (replayed(journal), Topics(MemoryJournal())):
        restored.restore([early, late])
        assert [t.id for t in restored if t.name == "a"] == [second.id]
        journal.replay(MemoryJournal().attach(restored), 0)
        assert sorted(restored.items()) == sorted(topics.items())
    backwards = Topics(MemoryJournal())
    backwards.restore([late, early])
    assert [t.id for t in backwards if t.name == "a"] == [second.id]


# Changes


def test_a_topic_that_is_gone_cannot_be_changed_by_who_still_holds_it() -> None:
    _, topics = made("a")
    gone = topics.get("a")
    topics.delete([gone])
    topics.create(NewTopic(name="a", queue_count=1))
    changes: list[Callable[[], None]] = [
        lambda: topics.delete([gone]),
        lambda: topics.grow({gone: 9}),
        lambda: topics.set_config({gone: {"k": "v"}}),
        lambda: topics.set_permission({gone: 2}),
        lambda: topics.advance_log_starts({gone: {0: 1}}),
    ]
    for change in changes:
        with pytest.raises(UnknownTopic):
            change()


def test_queues_are_added_and_never_taken_away() -> None:
    _, topics = made("a")
    topic = topics.get("a")
    topics.grow({topic: 6})
    assert (topic.queue_count, topic.read_queues, topic.write_queues) == (6, 6, 6)
    with pytest.raises(InvalidTopic, match="cannot have 5 queues; the range is 6 to"):
        topics.grow({topic: 5})


def test_fewer_queues_may_be_written_or_read_while_all_of_them_stay() -> None:
    _, topics = made("a")
    topic = topics.get("a")
    topics.set_queues({topic: (4, 2)})
    assert (topic.queue_count, topic.read_queues, topic.write_queues) == (4, 4, 2)
    topics.set_queues({topic: (2, 8)})
    assert (topic.queue_count, topic.read_queues, topic.write_queues) == (8, 2, 8)
    with pytest.raises(InvalidTopic):
        topics.set_queues({topic: (-1, 2)})


def test_log_starts_only_advance() -> None:
    _, topics = made("a")
    topic = topics.get("a")
    topics.advance_log_starts({topic: {0: 10, 1: 20}})
    topics.advance_log_starts({topic: {0: 5, 1: 25, 2: 1}})
    assert topic.log_starts == {0: 10, 1: 25, 2: 1}


def test_log_starts_of_a_hundred_thousand_queues_are_one_request() -> None:
    journal, topics = made("a", queue_count=100_000)
    topic = topics.get("a")
    topics.advance_log_starts({topic: dict.fromkeys(range(100_000), 1 << 40)})
    assert len(topic.log_starts) == 100_000
    assert journal.group_sizes == [1, 2]


def test_log_starts_of_queues_or_offsets_that_cannot_be_are_refused() -> None:
    journal, topics = made("a")
    topic = topics.get("a")
    end = journal.end
    for queue_id in (-1, 4):
        with pytest.raises(UnknownQueue):
            topics.advance_log_starts({topic: {0: 1, queue_id: 1}})
    for offset in (-1, 1 << 63):
        with pytest.raises(OffsetOutOfRange):
            topics.advance_log_starts({topic: {0: offset}})
    assert journal.end == end


def test_what_is_so_already_is_not_appended() -> None:
    journal, topics = made("a")
    topic = topics.get("a")
    topics.set_config({topic: {"k": "v"}})
    end = journal.end
    topics.grow({topic: 4})
    topics.set_queues({topic: (4, 4)})
    topics.set_config({topic: {"k": "v"}})
    topics.set_permission({topic: 6})
    topics.advance_log_starts({topic: {0: 0}})
    topics.delete([])
    topics.create_many([])
    assert journal.end == end


def test_the_version_grows_with_every_change_that_a_listing_shows() -> None:
    _, topics = made("a")
    topic = topics.get("a")
    versions = [topics.version]
    for change in (
        lambda: topics.grow({topic: 9}),
        lambda: topics.set_config({topic: {"k": "v"}}),
        lambda: topics.set_permission({topic: 4}),
        lambda: topics.create(NewTopic(name="b", queue_count=1)),
        lambda: topics.delete([topic]),
    ):
        change()
        versions.append(topics.version)
    assert versions == sorted(set(versions))


def test_the_version_stays_while_retention_moves_log_starts() -> None:
    _, topics = made("a")
    version = topics.version
    topics.advance_log_starts({topics.get("a"): {0: 10}})
    assert topics.version == version


def test_the_version_is_the_same_after_a_restart() -> None:
    journal, topics = made("a", "b")
    topics.delete([topics.get("b")])
    assert replayed(journal).version == topics.version
    restored = Topics(MemoryJournal())
    restored.restore(topics.snapshot())
    assert restored.version == topics.version


def test_listeners_hear_of_every_change_after_it_was_made() -> None:
    _, topics = made()
    heard: list[object] = []
    topics.on_created.append(lambda topic: heard.append(("created", topic.name, len(topics))))
    topics.on_deleted.append(lambda topic: heard.append(("deleted", topic.name, len(topics))))
    topics.on_grown.append(lambda topic, had: heard.append(("grown", had, topic.queue_count)))
    topics.on_altered.append(lambda topic: heard.append(("altered", dict(topic.config))))
    topics.on_log_starts.append(lambda topic, moved: heard.append(("starts", dict(moved))))
    topic = topics.create(NewTopic(name="a", queue_count=2))
    topics.grow({topic: 4})
    topics.set_queues({topic: (2, 2)})
    topics.set_config({topic: {"k": "v"}})
    topics.advance_log_starts({topic: {0: 5, 1: 0}})
    topics.delete([topic])
    assert heard == [
        ("created", "a", 1),
        ("grown", 2, 4),
        ("altered", {}),
        ("altered", {}),
        ("altered", {"k": "v"}),
        ("starts", {0: 5}),
        ("deleted", "a", 0),
    ]


def test_a_walk_over_all_topics_may_pause_while_they_change() -> None:
    _, topics = made("a", "b", "c")
    walk = iter(topics)
    assert next(walk).name == "a"
    topics.delete([topics.get("b")])
    topics.create(NewTopic(name="d", queue_count=1))
    assert {topic.name for topic in walk} >= {"c"}


def test_a_slice_takes_some_thousand_items_and_no_more() -> None:
    _, topics = made(*(f"topic-{number}" for number in range(10_000)))
    slices = list(topics.snapshot())
    assert len(slices) > 10
    topics.delete(topics)
    assert len(list(topics.snapshot())) > 5, "a walk over empty places pauses too"


# The model


class TopicsModel(RuleBasedStateMachine):
    """Any calls in any order, with restarts between: the topics are what a dict says."""

    def __init__(self) -> None:
        super().__init__()
        self.new_id = counted_ids()
        self.journal = MemoryJournal()
        self.topics = self.start()
        self.model: dict[str, dict[str, Any]] = {}
        self.ids: set[bytes] = set()

    def start(self) -> Topics:
        topics = Topics(self.journal, new_id=self.new_id, slice_cost=1)
        self.state = self.journal.attach(topics)
        return topics

    names = st.sampled_from("abcd")
    counts = st.integers(1, 6)

    @rule(name=names, count=counts)
    def create(self, name: str, count: int) -> None:
        new = NewTopic(name=name, queue_count=count)
        if name in self.model:
            with pytest.raises(TopicExists):
                self.topics.create(new)
            return
        topic = self.topics.create(new)
        assert topic.id not in self.ids, "an id is never used again"
        self.ids.add(topic.id)
        self.model[name] = {
            "queue_count": count,
            "read_queues": count,
            "write_queues": count,
            "permission": 6,
            "config": {},
            "log_starts": {},
        }

    @rule(names=st.sets(names, min_size=1))
    def delete(self, names: set[str]) -> None:
        self.topics.delete([topic for topic in self.topics if topic.name in names])
        self.model = {name: rest for name, rest in self.model.items() if name not in names}

    @rule(name=names, read=counts, write=counts)
    def set_queues(self, name: str, read: int, write: int) -> None:
        for topic, model in self.known(name):
            self.topics.set_queues({topic: (read, write)})
            count = max(model["queue_count"], read, write)
            model.update(queue_count=count, read_queues=read, write_queues=write)

    @rule(name=names, value=st.sampled_from("xyz"))
    def set_config(self, name: str, value: str) -> None:
        for topic, model in self.known(name):
            self.topics.set_config({topic: {"key": value}})
            model["config"] = {"key": value}

    @rule(name=names, permission=st.integers(0, 6))
    def set_permission(self, name: str, permission: int) -> None:
        for topic, model in self.known(name):
            self.topics.set_permission({topic: permission})
            model["permission"] = permission

    @rule(name=names, queue_id=st.integers(0, 6), offset=st.integers(0, 50))
    def advance(self, name: str, queue_id: int, offset: int) -> None:
        for topic, model in self.known(name):
            if queue_id >= model["queue_count"]:
                with pytest.raises(UnknownQueue):
                    self.topics.advance_log_starts({topic: {queue_id: offset}})
                continue
            self.topics.advance_log_starts({topic: {queue_id: offset}})
            if offset > model["log_starts"].get(queue_id, 0):
                model["log_starts"][queue_id] = offset

    @rule()
    def restart_with_the_log_alone(self) -> None:
        self.topics = self.start()
        self.journal.replay(self.state, 0)

    @rule(earlier=st.integers(0, 5))
    def restart_with_a_snapshot(self, earlier: int) -> None:
        slices = list(self.topics.snapshot())
        changes = self.journal.changes
        replay_from = changes[-earlier].position if 0 < earlier <= len(changes) else 0
        self.topics = self.start()
        self.topics.restore(slices)
        self.journal.replay(self.state, replay_from)

    def known(self, name: str) -> Iterator[tuple[Topic, dict[str, Any]]]:
        if name in self.model:
            yield self.topics.get(name), self.model[name]

    @invariant()
    def topics_are_as_the_model_says(self) -> None:
        found = {
            topic.name: {
                "queue_count": topic.queue_count,
                "read_queues": topic.read_queues,
                "write_queues": topic.write_queues,
                "permission": topic.permission,
                "config": topic.config,
                "log_starts": topic.log_starts,
            }
            for topic in self.topics
        }
        assert found == self.model
        assert all(self.topics.find_id(topic.id) is topic for topic in self.topics)


TestTopicsAgainstTheModel = TopicsModel.TestCase
TestTopicsAgainstTheModel.settings = settings(
    max_examples=budget("property_examples"),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
