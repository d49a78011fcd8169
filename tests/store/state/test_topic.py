"""Topics in the slices of a snapshot."""

from rockgate.store.state.topic import Topic, pack_slice, save, unpack_slice
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX, Created, LogStarts

ID = bytes(range(1, 17))


def a_topic(permission: int = 6, **changes: object) -> Topic:
    topic = Topic(Created("orders", ID, 4, permission, True, {"k": "v"}), 1000)
    for name, value in changes.items():
        setattr(topic, name, value)
    return topic


def test_a_topic_comes_back_from_a_slice_with_everything_but_its_log_starts() -> None:
    topic = a_topic(position=2000, queue_count=8, read_queues=8, write_queues=2, permission=4)
    [(_, saved)] = save(topic)
    version, topics, starts = unpack_slice(pack_slice(77, [saved]))
    assert (version, [found.fields() for found in topics], starts) == (77, [topic.fields()], [])


def test_log_starts_are_pieces_of_their_own() -> None:
    pieces = list(save(a_topic(log_starts={0: 5, 3: 7})))
    assert pieces[1:] == [(2, LogStarts(ID, {0: 5, 3: 7}))]


def test_the_log_starts_of_a_hundred_thousand_queues_are_many_small_pieces() -> None:
    offsets = {queue_id: queue_id + 1 for queue_id in range(QUEUE_COUNT_MAX)}
    pieces = [
        piece.offsets
        for _, piece in save(a_topic(queue_count=QUEUE_COUNT_MAX, log_starts=offsets))
        if isinstance(piece, LogStarts)
    ]
    assert max(map(len, pieces)) <= 2048
    assert {k: v for piece in pieces for k, v in piece.items()} == offsets


def test_a_topic_with_a_large_config_costs_more_of_a_slice() -> None:
    [(small, _)] = save(a_topic())
    [(large, _)] = save(a_topic(config={"k": "v" * 100_000}))
    assert large > 500 * small


def test_permission_bits_say_who_may_do_what() -> None:
    topic = a_topic(permission=4)
    assert (topic.is_readable, topic.is_writable) == (True, False)
    topic.permit(2)
    assert (topic.is_readable, topic.is_writable) == (False, True)


def test_a_queue_begins_at_0_until_something_else_is_said() -> None:
    topic = a_topic(log_starts={3: 7})
    assert (topic.log_start(0), topic.log_start(3)) == (0, 7)
