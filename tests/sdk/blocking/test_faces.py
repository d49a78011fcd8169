"""Pulling and administration without a loop, and that faces lack nothing of what they are over."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.sdk import (
    Admin,
    Closed,
    Consumer,
    ConsumerSettings,
    LitePullConsumer,
    LitePullSettings,
    Message,
    PullConsumer,
    PullStatus,
    Received,
    Refused,
    Start,
    TopicSettings,
)
from rockgate.sdk.admin.brokers import BrokerAdmin
from rockgate.sdk.admin.groups import GroupAdmin
from rockgate.sdk.admin.messages import MessageAdmin
from rockgate.sdk.admin.offsets import OffsetAdmin
from rockgate.sdk.admin.topics import TopicAdmin
from rockgate.sdk.blocking import (
    BlockingAdmin,
    BlockingConsumer,
    BlockingLitePullConsumer,
    BlockingProducer,
    BlockingPullConsumer,
)
from rockgate.sdk.blocking import admin as admin_faces
from rockgate.sdk.blocking.face import Face, OnLoop, Waiting
from rockgate.sdk.producer.producer import Producer

numbers = count()

FACES = [
    (Producer, BlockingProducer, {"client", "group"}),
    # `on` is set with what is inside, and needs no loop.
    (Consumer, BlockingConsumer, {"group", "on", "check_listeners"}),
    (PullConsumer, BlockingPullConsumer, {"group"}),
    (LitePullConsumer, BlockingLitePullConsumer, {"group"}),
    (Admin, BlockingAdmin, set()),
    (TopicAdmin, admin_faces.BlockingTopicAdmin, set()),
    (GroupAdmin, admin_faces.BlockingGroupAdmin, set()),
    (BrokerAdmin, admin_faces.BlockingBrokerAdmin, set()),
    (MessageAdmin, admin_faces.BlockingMessageAdmin, set()),
    (OffsetAdmin, admin_faces.BlockingOffsetAdmin, set()),
]


@pytest.mark.row("BLOCK-1")
@pytest.mark.parametrize(
    ("inner", "face", "without"), FACES, ids=[inner.__name__ for inner, _, _ in FACES]
)
def test_a_face_has_every_call_of_what_is_behind_it(
    inner: type, face: type, without: set[str]
) -> None:
    calls = {name for name in vars(inner) if not name.startswith("_")} - without
    assert {name for name in calls if not hasattr(face, name)} == set()
    for name in calls:
        waits, behind = inspect.getattr_static(face, name), inspect.getattr_static(inner, name)
        if isinstance(waits, Waiting | OnLoop):
            assert waits.method is behind
            assert isinstance(waits, Waiting) is inspect.iscoroutinefunction(behind)


@pytest.mark.row("BLOCK-1")
@pytest.mark.parametrize(
    ("inner", "face"),
    [
        (PullConsumer, BlockingPullConsumer),
        (LitePullConsumer, BlockingLitePullConsumer),
        (Admin, BlockingAdmin),
    ],
)
def test_a_face_is_made_with_the_same_parameters_but_a_client(inner: type, face: type) -> None:
    expected = dict(inspect.signature(inner).parameters)
    # A client belongs to a loop of the application's own.
    del expected["client"]
    assert dict(inspect.signature(face).parameters) == expected


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("faces"), rocketmq=True) as running:
        yield "{}:{}".format(*running.address("namesrv"))
    assert [each for each in threading.enumerate() if each.name == "rockgate-sdk"] == []


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"faced-{next(numbers)}"


def send(name_server: str, topic: str, *bodies: bytes) -> None:
    with BlockingProducer(name_server, group="shop") as producer:
        for body in bodies:
            producer.send(Message(topic, body), key="one queue")


@pytest.mark.row("BLOCK-1")
def test_batches_are_polled_committed_and_sought_without_a_loop(
    name_server: str, topic: str
) -> None:
    send(name_server, topic, b"a", b"b", b"c")
    settings = LitePullSettings(start=Start.BEGINNING, auto_commit=False)
    with BlockingLitePullConsumer(
        name_server, group="faced-lite", topics=[topic], settings=settings
    ) as consumer:
        assert [each.body for each in consumer.poll(30, count_max=2)] == [b"a", b"b"]
        (queue,) = [each for each in consumer.assignment() if consumer.position(each)]
        consumer.commit()
        assert (consumer.committed(queue), consumer.position(queue)) == (2, 2)
        consumer.pause([queue])
        assert (consumer.paused, consumer.poll(0)) == ([queue], [])
        consumer.resume([queue])
        consumer.seek_to_begin(queue)
        assert [each.body for each in consumer.poll(30)] == [b"a", b"b", b"c"]
        with pytest.raises(ValueError, match="Offset must be 0 to 3, not 9"):
            consumer.seek(queue, 9)
        consumer.seek(queue, 1)
        assert consumer.position(queue) == 1
        consumer.seek_to_end(queue)
        assert consumer.position(queue) == 3
    with pytest.raises(Closed):
        consumer.poll()


@pytest.mark.row("BLOCK-2")
def test_a_poll_ends_when_another_thread_closes_the_consumer(name_server: str, topic: str) -> None:
    send(name_server, topic, b"a")
    consumer = BlockingLitePullConsumer(name_server, group="faced-ends", topics=[topic]).open()
    ended = threading.Event()

    def poll() -> None:
        with pytest.raises(Closed):
            consumer.poll(600)
        ended.set()

    thread = threading.Thread(target=poll)
    thread.start()
    wait_until(lambda: consumer.assignment(), "queues are assigned")
    consumer.close()
    assert ended.wait(30)
    thread.join()


@pytest.mark.row("BLOCK-1")
def test_queues_are_pulled_by_offset_without_a_loop(name_server: str, topic: str) -> None:
    send(name_server, topic, b"a", b"b")
    with BlockingPullConsumer(name_server, group="faced-pull", topics=[topic]) as consumer:
        queues = consumer.queues(topic)
        wait_until(lambda: consumer.balanced(topic) == queues, "all queues are this one's")
        (queue,) = [each for each in queues if consumer.end(each)]
        found = consumer.pull(queue, consumer.begin(queue))
        assert found.status is PullStatus.FOUND
        assert [each.body for each in found.messages] == [b"a", b"b"]
        consumer.commit(queue, found.next_offset)
        consumer.persist()
        assert consumer.committed(queue, from_store=True) == 2


@pytest.mark.row("BLOCK-1")
def test_a_cluster_is_administered_without_a_loop(name_server: str, topic: str) -> None:
    with BlockingAdmin(name_server) as admin:
        admin.topics.create(topic, TopicSettings(read_queues=2, write_queues=2))
        send(name_server, topic, b"a")
        assert topic in admin.topics.names()
        bounds = admin.topics.bounds(topic)
        assert (len(bounds), sum(each.max_offset for each in bounds)) == (2, 1)
        (broker,) = admin.brokers.all()
        assert admin.brokers.runtime(broker.name).version
        queue = next(each.queue for each in bounds if each.max_offset)
        admin.groups.create("faced-group")
        admin.offsets.commit("faced-group", queue, 1)
        assert admin.groups.lag("faced-group", topic).lag == 0
        with pytest.raises(Refused):
            admin.groups.running_info("faced-group", "nobody")
        assert admin.messages.by_key(topic, "none") == []
    with pytest.raises(Closed):
        admin.topics.names()


@pytest.mark.row("BLOCK-1")
def test_a_consumer_is_subscribed_and_paused_without_a_loop(name_server: str, topic: str) -> None:
    other = f"{topic}-other"
    send(name_server, topic, b"a")
    send(name_server, other, b"b", b"c")
    settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
    consumer = BlockingConsumer(name_server, group="faced-live", settings=settings)
    seen: list[bytes] = []

    @consumer.on(topic)
    def listen(message: Received) -> None:
        seen.append(message.body)

    def listen_to_both(messages: Sequence[Received]) -> None:
        seen.extend(each.body for each in messages)

    with consumer:
        wait_until(lambda: seen == [b"a"], "the first topic")
        consumer.pause(other)
        consumer.subscribe(other, listener=listen_to_both, batch=2)
        wait_until(
            lambda: any(each.topic == other for each in consumer.queues), "queues of the other"
        )
        assert seen == [b"a"]
        consumer.resume(other)
        wait_until(lambda: seen == [b"a", b"b", b"c"], "the other topic")
        consumer.unsubscribe(topic)
        wait_until(
            lambda: all(each.topic != topic for each in consumer.queues), "the first is given up"
        )


@pytest.mark.row("BLOCK-1")
def test_a_message_is_given_up_without_a_loop(name_server: str, topic: str) -> None:
    send(name_server, topic, b"hopeless")
    settings = ConsumerSettings(start=Start.BEGINNING)
    with BlockingConsumer(
        name_server, group="faced-dead", topics=[topic], settings=settings
    ) as consumer:
        consumer.dead_letter(next(consumer))
    with BlockingAdmin(name_server) as admin:
        (bounds,) = admin.topics.bounds("%DLQ%faced-dead")
    assert bounds.max_offset == 1


@pytest.mark.row("BLOCK-1")
def test_a_plain_call_is_made_on_the_loop_that_it_belongs_to() -> None:
    class Inner:
        async def open(self) -> None: ...

        async def close(self) -> None: ...

        def thread(self) -> threading.Thread:
            assert asyncio.get_running_loop().is_running()
            return threading.current_thread()

    class InnerFace(Face):
        def __init__(self) -> None:
            self.inner = Inner()
            super().__init__(self.inner)

        thread = OnLoop(Inner.thread)

    with InnerFace() as face:
        assert face.thread() is not threading.current_thread()
