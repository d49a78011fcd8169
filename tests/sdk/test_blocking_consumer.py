"""The consumer without a loop, against a real server: docs/reference/sdk.md, "Without a loop"."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from tests.gateway.server import RunningServer, environment, heed_interrupts
from tests.waiting import wait_until

from rockgate.sdk import Closed, ConsumerSettings, Message, Received, Start
from rockgate.sdk.blocking import BlockingConsumer, BlockingProducer
from rockgate.sdk.blocking.face import Face
from rockgate.sdk.consumer.signals import SIGNALS

BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
FOUR = [b"m%d" % number for number in range(4)]


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = ["remoting.delay_levels=1s 4s 1s"]
    with RunningServer(
        tmp_path_factory.mktemp("blocking"), settings=settings, rocketmq=True
    ) as running:
        yield "{}:{}".format(*running.address("namesrv"))


def send(name_server: str, topic: str, *bodies: bytes) -> None:
    with BlockingProducer(name_server, group="shop") as producer:
        for body in bodies:
            producer.send(Message(topic, body), key="one queue")


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("rockgate-")]


@pytest.mark.row("BLOCK-1")
def test_asking_for_the_next_message_acknowledges_the_one_before(name_server: str) -> None:
    send(name_server, "iterated", *FOUR)
    seen: list[bytes] = []
    with BlockingConsumer(
        name_server, group="b-iterated", topics=["iterated"], settings=BEGINNING
    ) as consumer:
        for message in consumer:
            seen.append(message.body)
            if len(seen) == 3:
                break
        assert consumer.statistics.cached_count == 2
    assert threads() == []
    with BlockingConsumer(
        name_server, group="b-iterated", topics={"iterated": "*"}, settings=BEGINNING
    ) as consumer:
        seen += [next(consumer).body, next(consumer).body]
    assert seen == [*FOUR[:3], *FOUR[2:]]


@pytest.mark.row("BLOCK-1")
def test_a_message_can_be_settled_by_hand(name_server: str) -> None:
    send(name_server, "settled", b"x")
    with BlockingConsumer(
        name_server, group="b-settled", topics=["settled"], settings=BEGINNING
    ) as consumer:
        first = next(consumer)
        # The second level: 4 s here, where the broker would choose the third, which is 1 s.
        consumer.retry(first, after=timedelta(seconds=2))
        assert first.was_settled
        second = next(consumer)
        consumer.ack(second)
        assert second.was_settled
        assert consumer.statistics.cached_count == 0
    assert second.stored_at - first.stored_at >= timedelta(seconds=4)
    assert (first.tries, second.tries) == (1, 2)


@pytest.mark.row("BLOCK-1")
def test_listeners_run_in_threads_and_may_use_blocking_producers(name_server: str) -> None:
    send(name_server, "heard", *FOUR)
    send(name_server, "answers", b"makes the topic")
    seen: list[list[bytes]] = []
    with BlockingProducer(name_server, group="answerers") as producer:
        consumer = BlockingConsumer(name_server, group="b-heard", settings=BEGINNING)

        @consumer.on("heard", batch=4)
        def listen(messages: Sequence[Received]) -> None:
            assert threading.current_thread().name.startswith("rockgate-listener")
            for message in messages:
                producer.send(Message("answers", message.body))
            seen.append([message.body for message in messages])

        with consumer:
            wait_until(lambda: sum(map(len, seen)) == 4, "four messages")
            assert consumer.statistics.topics["heard"].ok_count == 4
            with pytest.raises(ValueError, match="cannot be iterated over"):
                iter(consumer)
    assert [body for part in seen for body in part] == FOUR
    assert consumer.statistics.topics["heard"].ok_count == 4


@pytest.mark.row("BLOCK-2")
def test_another_thread_may_close_it_and_whoever_iterates_ends(name_server: str) -> None:
    send(name_server, "closed", b"x")
    consumer = BlockingConsumer(
        name_server, group="b-closed", topics=["closed"], settings=BEGINNING
    ).open()
    got, ended = threading.Event(), threading.Event()

    def iterate() -> None:
        for _ in consumer:
            got.set()
        ended.set()

    thread = threading.Thread(target=iterate)
    thread.start()
    assert got.wait(20)
    consumer.close()
    assert ended.wait(20)
    thread.join(20)
    consumer.close()
    assert next(consumer, None) is None
    with pytest.raises(Closed, match="opened only once"):
        consumer.open()


class SlowToOpen:
    """Something that is open only after `may_open`."""

    def __init__(self) -> None:
        self.opening = threading.Event()
        self.may_open = threading.Event()
        self.is_closed = False

    async def open(self) -> None:
        self.opening.set()
        await asyncio.to_thread(self.may_open.wait, 20)

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.row("BLOCK-2")
def test_closing_while_it_is_opened_closes_it() -> None:
    inner = SlowToOpen()
    face = Face(inner)
    opening = threading.Thread(target=face.open)
    opening.start()
    assert inner.opening.wait(20)
    closing = threading.Thread(target=face.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive(), "it waits until there is something to close"
    inner.may_open.set()
    for thread in (opening, closing):
        thread.join(20)
    assert inner.is_closed


@pytest.mark.row("BLOCK-2")
@pytest.mark.timeout(120)
def test_run_ends_when_another_thread_closes_it_and_leaves_handlers_of_signals_as_they_were(
    name_server: str,
) -> None:
    send(name_server, "run", b"x")
    consumer = BlockingConsumer(name_server, group="b-run", settings=BEGINNING)
    heard = threading.Event()

    @consumer.on("run")
    def listen(message: Received) -> None:
        heard.set()

    def close() -> None:
        heard.wait(20)
        consumer.close()

    before = {each: signal.getsignal(each) for each in SIGNALS}
    thread = threading.Thread(target=close)
    thread.start()
    consumer.run()
    thread.join(20)
    assert heard.is_set()
    assert {each: signal.getsignal(each) for each in SIGNALS} == before


@pytest.mark.row("BLOCK-1")
def test_pausing_stops_pulls_until_it_is_resumed(name_server: str) -> None:
    send(name_server, "paused", b"first")
    with BlockingConsumer(
        name_server, group="b-paused", topics=["paused"], settings=BEGINNING
    ) as consumer:
        assert next(consumer).body == b"first"
        consumer.pause("paused")
        consumer.resume()
        send(name_server, "paused", b"second")
        assert next(consumer).body == b"second"


PROGRAM = """
import sys
from rockgate.sdk import ConsumerSettings, Start
from rockgate.sdk.blocking import BlockingConsumer

settings = ConsumerSettings(start=Start.BEGINNING)
topic, group, mode = sys.argv[2:]
if mode == "run":
    consumer = BlockingConsumer(sys.argv[1], group=group, settings=settings)

    @consumer.on(topic)
    def listen(message):
        print(message.body.decode(), flush=True)

    consumer.run()
    print("drained", flush=True)
else:
    try:
        with BlockingConsumer(
            sys.argv[1], group=group, topics=[topic], settings=settings
        ) as consumer:
            for message in consumer:
                print(message.body.decode(), flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.row("BLOCK-2")
@pytest.mark.parametrize(
    ("mode", "sent", "last"),
    [
        pytest.param("run", signal.SIGTERM, "drained", id="run, SIGTERM"),
        pytest.param("run", signal.SIGINT, "drained", id="run, Ctrl-C"),
        pytest.param("for", signal.SIGINT, "interrupted", id="for, Ctrl-C"),
    ],
)
def test_signals_end_a_program_that_consumes(
    name_server: str, mode: str, sent: signal.Signals, last: str
) -> None:
    # A topic of its own: two listeners that print at once may mix their lines.
    topic = f"signalled-{mode}-{sent}"
    send(name_server, topic, b"heard")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, name_server, topic, f"b-{mode}-{sent}", mode],
        env=environment(dict(os.environ)),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "heard\n"
            program.send_signal(sent)
            out, _ = program.communicate(timeout=60)
        finally:
            program.kill()  # or a failure would wait for a program that has not ended
    assert out.splitlines()[-1] == last
    assert program.returncode == 0
