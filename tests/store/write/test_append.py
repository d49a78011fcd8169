"""Appending many messages at once: the same as appending them as a group, in fewer steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.keeping import ALL, SEGMENT, Keeping
from tests.store.reading import entries

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BORN_HOST_V6, TRANSACTION_PREPARED, Contents
from rockgate.store.errors import EntryTooLarge, StoreError, StoreFull
from rockgate.store.log.commitlog import NO_HOST, PROPERTIES_SIZE_MAX, Draft
from rockgate.store.write.append import AppendedMessages, Intake

HOST = bytes(range(20))
CHANGES = b"rmq_sys_rockgate_test"
properties = st.lists(
    st.sampled_from(
        [
            b"KEYS\x01one two\x02",
            b"KEYS\x01three\x02",
            b"UNIQ_KEY\x0101FD\x02",
            b"TAGS\x01paid\x02",
            b"xTAGS\x01no\x02",
            b"WAIT\x01true\x02",
        ]
    ),
    max_size=4,
).map(b"".join)
contents = st.lists(
    st.tuples(st.integers(-5, 5), st.binary(max_size=30), properties), min_size=1, max_size=8
)


def kept() -> Keeping:
    keeping = Keeping(key_index=True, key_index_slots=5, key_index_entries=12)
    keeping.topic("orders", 2)
    return keeping


def told(keeping: Keeping) -> list[object]:
    """Everything that the store has of the topic: the log's bytes, the units, the key index."""
    store = keeping.store
    queue = keeping.queue("orders", 1)
    walked = [
        bytes(view[entry.start : entry.end])
        for view, entry in store.log.walk(0)
        if entry.topic in (b"orders", CHANGES)
    ]
    found = {
        key: store.lookup.by_key(b"orders", key, limit=99)
        for key in (b"one", b"two", b"three", b"01FD", b"none")
    }
    units = [unit[:1] + unit[2:] for unit in queue.walk(0)]
    return [[_anywhere(each) for each in walked], units, [len(each) for each in found.values()]]


def _anywhere(data: bytes) -> tuple[object, ...]:
    """An entry without its position, which random ids of topics before it may move."""
    entry = envelope.read(data)
    envelope.check(data, entry)
    return (*entry[2:6], *entry[7:15], envelope.properties_of(data, entry), entry.topic)


@given(st.lists(contents, min_size=1, max_size=4), st.sampled_from([0, BORN_HOST_V6]))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_messages_appended_together_are_what_a_group_of_them_is(
    batches: list[list[tuple[int, bytes, bytes]]], sys_flag: int
) -> None:
    host = HOST if sys_flag else NO_HOST
    together, one_by_one = kept(), kept()
    for batch in batches:
        found = together.store.appender.messages(
            together.queue("orders", 1),
            Contents.of(batch),
            born_ms=7,
            born_host=host,
            sys_flag=sys_flag,
        )
        drafts = [
            Draft(b"", 0, 0, body, packed, 0, 7, host, flag, sys_flag)
            for flag, body, packed in batch
        ]
        queue = one_by_one.queue("orders", 1)
        wanted = one_by_one.store.appender.group([Intake(queue, draft) for draft in drafts])
        assert found == AppendedMessages(
            wanted[0].offset,
            [each.position for each in wanted],
            wanted[-1].end,
            wanted[0].store_ms,
            queue.queue_id,
        )
    assert told(together) == told(one_by_one)
    together.kill()
    assert told(together) == told(one_by_one)


@given(contents, st.sampled_from([0, BORN_HOST_V6]))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_message_with_a_change_is_what_a_group_of_the_two_is(
    messages: list[tuple[int, bytes, bytes]], sys_flag: int
) -> None:
    host = HOST if sys_flag else NO_HOST
    together, one_by_one = kept(), kept()
    for flag, body, packed in messages:
        queue = together.queue("orders", 1)
        draft = Draft(queue.topic, 1, queue.next_offset, body, packed, 0, 7, host, flag, sys_flag)
        found = together.store.appender.placed_with(queue, draft, CHANGES, b"changed")
        intakes = [
            Intake(one_by_one.queue("orders", 1), draft),
            Intake(None, Draft(CHANGES, 0, -1, b"changed")),
        ]
        message, change = one_by_one.store.appender.group(intakes)
        assert found == message._replace(end=change.end)
    assert told(together) == told(one_by_one)
    together.kill()
    assert told(together) == told(one_by_one)


def test_whoever_waits_for_the_queue_is_notified_once() -> None:
    keeping = kept()
    queue = keeping.queue("orders")
    seen = []
    keeping.store.appender.on_append = lambda queue: seen.append(queue.next_offset)
    keeping.store.appender.messages(queue, Contents.of([(0, b"a", b""), (0, b"b", b"")]), born_ms=1)
    assert seen == [2]


@pytest.mark.parametrize(
    "content",
    [(0, bytes(SEGMENT), b""), (0, b"x", b"a\x01%b\x02" % bytes(PROPERTIES_SIZE_MAX))],
)
def test_one_message_that_cannot_be_leaves_none_of_them(
    content: tuple[int, bytes, bytes],
) -> None:
    keeping = kept()
    queue = keeping.queue("orders")
    end = keeping.store.log.end
    with pytest.raises(EntryTooLarge):
        keeping.store.appender.messages(queue, Contents.of([(0, b"fine", b""), content]), born_ms=1)
    assert (keeping.store.log.end, queue.next_offset) == (end, 0)
    keeping.store.appender.messages(queue, Contents.of([(0, b"fine", b"")]), born_ms=1)
    [found] = entries(keeping.store, queue, 0, ALL)
    assert bytes(envelope.body_of(found.entry)) == b"fine"


def test_a_store_that_refuses_messages_refuses_these() -> None:
    keeping = kept()
    keeping.store.appender.refusal = StoreFull("no room")
    queue = keeping.queue("orders")
    with pytest.raises(StoreError):
        keeping.store.appender.messages(queue, Contents.of([(0, b"x", b"")]), born_ms=1)
    with pytest.raises(StoreError):
        draft = Draft(queue.topic, 0, 0, b"x")
        keeping.store.appender.placed_with(queue, draft, CHANGES, b"changed")


def test_parts_of_transactions_do_not_come_this_way() -> None:
    """They are indexed otherwise, or not at all."""
    keeping = kept()
    with pytest.raises(AssertionError):
        keeping.store.appender.messages(
            keeping.queue("orders"),
            Contents.of([(0, b"x", b"")]),
            born_ms=1,
            sys_flag=TRANSACTION_PREPARED,
        )
