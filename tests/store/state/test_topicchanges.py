"""What a topic may be, and the bodies of topics' state entries."""

import base64

import msgspec
import pytest
from tests.store.journals import change_at

from rockgate.store.errors import EntryTooLarge, InvalidTopic
from rockgate.store.state.fold import CHANGE_SIZE_MAX
from rockgate.store.state.topicchanges import (
    CONFIG_SIZE_MAX,
    QUEUE_COUNT_MAX,
    TOPICS_TOPIC,
    ConfigSet,
    Created,
    LogStarts,
    NewTopic,
    PermissionSet,
    QueuesSet,
    TopicChangeKind,
    decode,
    deleted_ids,
    encode,
    random_topic_id,
)

ID = bytes(range(1, 17))
SAMPLES: list[tuple[TopicChangeKind, object]] = [
    (TopicChangeKind.CREATE, Created("orders", ID, 4, 6, False, {"retention.ms": "1000"})),
    (TopicChangeKind.DELETE, ID),
    (TopicChangeKind.QUEUES, QueuesSet(ID, 8, 4)),
    (TopicChangeKind.CONFIG, ConfigSet(ID, {"message.type": "DELAY"})),
    (TopicChangeKind.PERMISSION, PermissionSet(ID, 4)),
    (TopicChangeKind.LOG_STARTS, LogStarts(ID, {0: 17, 3: 1 << 40})),
]


@pytest.mark.parametrize(("kind", "item"), SAMPLES)
def test_a_change_reads_back_as_it_was_written(kind: TopicChangeKind, item: object) -> None:
    [body] = encode(kind, [item, item])
    assert decode(change_at(0, TOPICS_TOPIC, body)) == (kind, [item, item])


def test_a_field_that_a_later_release_adds_at_the_end_is_passed_over() -> None:
    body = bytes((1, TopicChangeKind.PERMISSION)) + msgspec.msgpack.encode([[ID, 4, "more"]])
    assert decode(change_at(0, TOPICS_TOPIC, body)) == (
        TopicChangeKind.PERMISSION,
        [PermissionSet(ID, 4)],
    )


def test_ten_thousand_topics_are_one_change_and_more_are_several_that_fit() -> None:
    news = [Created(f"topic-{n:05d}", ID, 4, 6, False, {}) for n in range(30_000)]
    assert len(list(encode(TopicChangeKind.CREATE, news[:10_000]))) == 1
    bodies = list(encode(TopicChangeKind.CREATE, news))
    assert len(bodies) > 1
    assert max(map(len, bodies)) <= CHANGE_SIZE_MAX
    found = [item for body in bodies for item in decode(change_at(0, TOPICS_TOPIC, body))[1]]
    assert found == news


def test_one_item_that_no_change_can_hold_is_refused() -> None:
    with pytest.raises(EntryTooLarge, match="Config record"):
        list(encode(TopicChangeKind.CONFIG, [ConfigSet(ID, {"k": "v" * CHANGE_SIZE_MAX})]))


def test_the_largest_topic_there_can_be_fits_into_one_change() -> None:
    new = NewTopic(name="é" * 16383, queue_count=1, config={"k": "v" * (CONFIG_SIZE_MAX - 1)})
    new.check()
    created = Created(new.name, ID, 1, 6, True, dict(new.config))
    assert len(list(encode(TopicChangeKind.CREATE, [created]))) == 1


def test_other_folds_learn_which_topics_a_change_deletes() -> None:
    for kind, item in SAMPLES:
        [body] = encode(kind, [item])
        expected = [ID] if kind is TopicChangeKind.DELETE else []
        assert list(deleted_ids(change_at(0, TOPICS_TOPIC, body))) == expected


@pytest.mark.parametrize(
    "name", ["", "a/b", "a\nb", "a\0", "\x7f", "\x9f", "\ud800", "x" * 32768, "é" * 16384]
)
def test_a_name_that_no_entry_or_listing_could_carry_is_refused(name: str) -> None:
    with pytest.raises(InvalidTopic):
        NewTopic(name=name, queue_count=1).check()


@pytest.mark.parametrize(
    "name", ["a", "x" * 32767, "%RETRY%group", "orders.eu-1", "订单", "a b", "."]
)
def test_any_other_name_is_for_the_protocols_to_judge(name: str) -> None:
    NewTopic(name=name, queue_count=1).check()


@pytest.mark.parametrize("count", [-1, 0, QUEUE_COUNT_MAX + 1])
def test_a_topic_has_at_least_one_queue_and_not_too_many(count: int) -> None:
    with pytest.raises(InvalidTopic, match=f"cannot have {count:,} queues"):
        NewTopic(name="t", queue_count=count).check()


@pytest.mark.parametrize("permission", [-1, 16])
def test_a_permission_is_made_of_known_bits(permission: int) -> None:
    with pytest.raises(InvalidTopic, match="permission"):
        NewTopic(name="t", queue_count=1, permission=permission).check()


@pytest.mark.parametrize("config", [{"k": "v" * CONFIG_SIZE_MAX}, {"k": "\ud800"}])
def test_a_config_is_text_within_a_limit(config: dict[str, str]) -> None:
    with pytest.raises(InvalidTopic, match="Config of topic 't'"):
        NewTopic(name="t", queue_count=1, config=config).check()


def test_a_random_id_is_never_zero_and_its_text_never_begins_with_a_dash() -> None:
    ids = {random_topic_id() for _ in range(2_000)}
    assert len(ids) == 2_000
    assert all(len(topic_id) == 16 and any(topic_id) for topic_id in ids)
    assert not any(base64.urlsafe_b64encode(topic_id).startswith(b"-") for topic_id in ids)
