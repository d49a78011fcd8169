"""kcat, unmodified, against the server.

It is a program that runs and ends and has no calls to drive, so it has tests of its own, marked
with the same features as the behaviours of the others.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from behaviours import features
from behaviours.bringing import CannotRun, debian_program, leave_out
from behaviours.driver import SECONDS_MAX
from behaviours.kcat import Failed, Kcat, Reader
from behaviours.steps import new_topic
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

VERSION = "1.7.1"
CLIENT = f"kcat {VERSION}"
PACKAGES = ("kcat", "librdkafka1", "libyajl2")
LARGEST = 1_048_588 - 72
SETTINGS = ["group.initial.rebalance.delay.ms=100"]
EAGER = ("-X", "heartbeat.interval.ms=300", "-X", "auto.offset.reset=earliest")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def command() -> list[str]:
    try:
        found = debian_program("kcat", *PACKAGES)
    except CannotRun as reason:
        leave_out(reason)
    said = subprocess.run([*found, "-V"], capture_output=True, text=True, check=True).stdout
    if f"Version {VERSION}" not in said:
        leave_out(CannotRun(f"kcat is not {VERSION} but {said.splitlines()[3]}"))
    return found


@pytest.fixture
def kcat(command: list[str], server: RunningServer) -> Kcat:
    return Kcat(command, server.bootstrap)


def numbered(first: int, count: int) -> bytes:
    return b"".join(b"%d\n" % n for n in range(first, first + count))


def spread(kcat: Kcat, topic: str, first: int, count: int) -> None:
    """That many numbers on each of four partitions."""
    for partition in range(4):
        typed = b"".join(b"%d\n" % (first + 4 * n + partition) for n in range(count))
        kcat.run("-P", "-t", topic, "-p", str(partition), typed=typed)


def member(
    kcat: Kcat, group: str, topic: str, *flags: str
) -> contextlib.AbstractContextManager[Reader]:
    """A member that leaves at the end, unless it was killed."""
    return kcat.started("-G", group, *EAGER, *flags, "-u", topic)


def wait_for_shares(members: list[Reader], counts: list[int], what: str) -> None:
    def is_shared() -> bool:
        found = [each.assignment for each in members]
        return [len(each) for each in found] == counts and len(set().union(*found)) == sum(counts)

    wait_until(is_shared, what, SECONDS_MAX)


def wait_for_lines(running: Reader, expected: set[str], what: str) -> None:
    wait_until(lambda: expected <= set(running.lines), what, SECONDS_MAX)


@pytest.mark.feature(features.ROUND_TRIP)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["-1", "0", "1"])
def test_what_is_sent_is_read_again(kcat: Kcat, codec: str, acks: str) -> None:
    topic = new_topic("kcat-codec")
    typed = b"".join(b"k%d:value %d\n" % (n % 7, n) for n in range(300))
    kcat.run("-P", "-t", topic, "-K:", "-z", codec, "-X", f"acks={acks}", typed=typed)
    found = [(each["key"], each["payload"]) for each in kcat.read(topic)]
    assert sorted(found) == sorted((f"k{n % 7}", f"value {n}") for n in range(300))


@pytest.mark.feature(features.IDEMPOTENT)
def test_an_idempotent_producer_writes_everything_once(kcat: Kcat) -> None:
    topic = new_topic("kcat-idempotent")
    kcat.run("-P", "-t", topic, "-X", "enable.idempotence=true", typed=numbered(0, 500))
    assert sorted(int(each["payload"]) for each in kcat.read(topic)) == list(range(500))


@pytest.mark.feature(features.KEYS)
def test_messages_of_one_key_are_one_partition_in_order(kcat: Kcat) -> None:
    topic = new_topic("kcat-keys")
    typed = b"".join(b"k%d:%d\n" % (n % 13, n) for n in range(650))
    kcat.run("-P", "-t", topic, "-K:", typed=typed)
    by_key: dict[str, list[tuple[int, int]]] = {}
    for each in kcat.read(topic):
        by_key.setdefault(each["key"], []).append((each["partition"], int(each["payload"])))
    assert len(by_key) == 13
    for key, found in by_key.items():
        assert len({partition for partition, _ in found}) == 1, key
        assert [n for _, n in found] == sorted(n for _, n in found), key


@pytest.mark.feature(features.SIZES)
def test_the_largest_batch_is_taken_and_one_byte_more_is_not(kcat: Kcat, tmp_path: Path) -> None:
    topic, file = new_topic("kcat-sizes"), tmp_path / "value"
    send = ("-P", "-t", topic, "-p", "0", "-X", "message.max.bytes=4000000", str(file))
    file.write_bytes(b"x" * LARGEST)
    kcat.run(*send)
    file.write_bytes(b"y" * (LARGEST + 1))
    with pytest.raises(Failed, match="Message size too large"):
        kcat.run(*send)
    (found,) = kcat.read(topic)
    assert found["payload"] == "x" * LARGEST


@pytest.mark.feature(features.CONTENT)
def test_headers_nulls_and_times_come_back(kcat: Kcat) -> None:
    topic = new_topic("kcat-content")
    headers = ("-H", "a=1", "-H", "a=2", "-H", "empty=", "-H", "null")
    kcat.run("-P", "-t", topic, "-p", "0", "-Z", "-K:", *headers, typed=b"k:\n:v\nk:v\n")
    found = kcat.read(topic)
    assert [(each["key"], each["payload"]) for each in found] == [
        ("k", None),
        (None, "v"),
        ("k", "v"),
    ]
    for each in found:
        assert each["headers"] == ["a", "1", "a", "2", "empty", "", "null", None]
        assert each["tstype"] == "create"
        assert abs(each["ts"] - found[0]["ts"]) < 60_000


@pytest.mark.feature(features.OFFSETS)
def test_offsets_are_found_by_place_and_by_time(kcat: Kcat) -> None:
    topic = new_topic("kcat-offsets")
    kcat.run("-P", "-t", topic, "-p", "0", typed=numbered(0, 50))
    late = kcat.read(topic)[-1]["ts"] + 1

    def read(*flags: str) -> list[int]:
        return [int(each["payload"]) for each in kcat.read(topic, "-p", "0", *flags)]

    assert read("-o", "17") == list(range(17, 50))
    assert read("-o", "-5") == list(range(45, 50))
    assert read("-o", "s@0") == list(range(50))
    assert read("-o", f"s@{late}") == []
    asked = kcat.run("-Q", "-t", f"{topic}:0:0", "-t", f"{topic}:1:-1").decode()
    assert sorted(asked.split("\n")) == ["", f"{topic} [0] offset 0", f"{topic} [1] offset 0"]


@pytest.mark.feature(features.WAITING)
def test_a_waiting_consumer_gets_what_comes_at_once(kcat: Kcat) -> None:
    topic = new_topic("kcat-wake")
    kcat.run("-P", "-t", topic, "-p", "2", typed=b"first\n")
    with kcat.started("-C", "-t", topic, "-u", "-X", "fetch.wait.max.ms=50000") as reader:
        wait_for_lines(reader, {"first"}, "the first is read")
        kcat.run("-P", "-t", topic, "-p", "3", typed=b"second\n")
        # Before its own wait would end.
        wait_until(lambda: "second" in reader.lines, "the second is read", 30)


@pytest.mark.feature(features.COMMITS)
def test_a_group_continues_where_it_committed(kcat: Kcat) -> None:
    topic = new_topic("kcat-grouped")
    group = f"group-of-{topic}"
    spread(kcat, topic, 0, 10)
    for first in (0, 40):
        with member(kcat, group, topic) as reader:
            expected = {str(n) for n in range(first, first + 40)}
            wait_for_lines(reader, expected, "all is read")
        assert sorted(reader.lines) == sorted(expected)
        spread(kcat, topic, first + 40, 10)


@pytest.mark.feature(features.SHARING)
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(kcat: Kcat) -> None:
    topic = new_topic("kcat-shared")
    group = f"group-of-{topic}"
    spread(kcat, topic, 0, 1)
    with member(kcat, group, topic) as first:
        wait_for_lines(first, {"0", "1", "2", "3"}, "all is read")
        with member(kcat, group, topic) as second:
            wait_for_shares([first, second], [2, 2], "the partitions are shared")
            spread(kcat, topic, 4, 10)
            both = {str(n) for n in range(4, 44)}
            wait_until(lambda: both <= {*first.lines, *second.lines}, "both read", SECONDS_MAX)
            assert len(both & set(first.lines)) == len(both & set(second.lines)) == 20
        wait_for_shares([first], [4], "the one that stays has all of them")


@pytest.mark.feature(features.DYING)
def test_a_member_that_dies_is_done_without_and_may_come_back(kcat: Kcat) -> None:
    topic = new_topic("kcat-dies")
    group, session = f"group-of-{topic}", ("-X", "session.timeout.ms=6000")
    spread(kcat, topic, 0, 1)
    with member(kcat, group, topic, *session) as stays:
        with member(kcat, group, topic, *session) as dies:
            wait_for_shares([stays, dies], [2, 2], "the partitions are shared")
            dies.kill()
        wait_for_shares([stays], [4], "the dead one's partitions are taken over")
        spread(kcat, topic, 100, 2)
        wait_for_lines(stays, {str(n) for n in range(100, 108)}, "all that is new is read")
        with member(kcat, group, topic, *session) as back:
            wait_for_shares([stays, back], [2, 2], "the one that came back has its share")


@pytest.mark.feature(features.STATIC)
def test_a_static_member_that_comes_back_finds_its_partitions(kcat: Kcat) -> None:
    topic = new_topic("kcat-static")
    group = f"group-of-{topic}"
    spread(kcat, topic, 0, 1)

    def named(name: str) -> contextlib.AbstractContextManager[Reader]:
        return member(kcat, group, topic, "-X", f"group.instance.id={name}")

    with named("stays") as stays:
        with named("comes-back") as before:
            wait_for_shares([stays, before], [2, 2], "the partitions are shared")
            theirs, count = before.assignment, stays.rebalance_count
            before.kill()
        with named("comes-back") as after:
            wait_until(lambda: after.assignment == theirs, "it has its partitions again")
            assert stays.rebalance_count == count, "the other had to move"


@pytest.mark.feature(features.GROUPS_AFTER)
@pytest.mark.parametrize("how", ["kill -9", "restart"])
def test_what_was_committed_is_there_when_the_server_comes_back(
    command: list[str], tmp_path: Path, how: str
) -> None:
    topic = new_topic("kcat-after")
    group = f"group-of-{topic}"
    with RunningServer(tmp_path, settings=SETTINGS) as server:
        kcat = Kcat(command, server.bootstrap)
        spread(kcat, topic, 0, 10)
        with member(kcat, group, topic) as reader:
            wait_for_lines(reader, {str(n) for n in range(40)}, "all is read")
        if how == "restart":
            assert server.stop() == 0
        else:
            server.kill()
        server.restart()
        spread(kcat, topic, 40, 5)
        with member(kcat, group, topic) as reader:
            wait_for_lines(reader, {str(n) for n in range(40, 60)}, "all that is new is read")
        assert len(reader.lines) == 20
        assert "Traceback" not in server.log


@pytest.mark.feature(features.LOSSLESS)
@pytest.mark.parametrize("how", ["kill -9", "restart"])
def test_nothing_acknowledged_is_lost_when_the_server_comes_back(
    command: list[str], tmp_path: Path, how: str
) -> None:
    topic = new_topic("kcat-surviving")
    with RunningServer(tmp_path) as server:
        kcat = Kcat(command, server.bootstrap)
        # It gives up when no broker is left (FINDINGS.md), and tells what was delivered until then.
        with kcat.started("-P", "-t", topic, "-p", "0", "-vv") as sender:
            stream = Typing(sender)
            wait_until(lambda: delivered(sender), "something is delivered")
            more = stream.count + 200
            wait_until(lambda: stream.count >= more, "more is sent")
            if how == "restart":
                assert server.stop() == 0
            else:
                server.kill()
            assert sender.wait() != 0
            stream.end()
        server.restart()
        found = [int(each["payload"]) for each in kcat.read(topic)]
        assert "Traceback" not in server.log
    assert found == list(range(len(found)))
    assert set(delivered(sender)) <= set(found)


def delivered(sender: Reader) -> list[int]:
    """The offsets of what was acknowledged, which are the numbers that were typed."""
    pattern = re.compile(r"% Message delivered to partition 0 \(offset (\d+)\)")
    return [int(match[1]) for line in list(sender.told) if (match := pattern.match(line))]


class Typing:
    """Types numbered lines on a thread of its own until it is stopped."""

    def __init__(self, into: Reader) -> None:
        self.count = 0
        self._into = into
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # It may end before its input does.
        with contextlib.suppress(BrokenPipeError):
            while not self._is_over.wait(0.001):
                self._into.type(str(self.count))
                self.count += 1

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()


def check_listing(found: Any, topic: str) -> None:
    assert found["originating_broker"]["name"]
    assert len(found["brokers"]) == 1
    (told,) = [each for each in found["topics"] if each["topic"] == topic]
    assert [each["partition"] for each in told["partitions"]] == [0, 1, 2, 3]
    broker = found["brokers"][0]["id"]
    assert {each["leader"] for each in told["partitions"]} == {broker}


@pytest.mark.feature("metadata of one topic and of all (-L)", "What it has beside")
@pytest.mark.parametrize("asks_for_all", [False, True])
def test_metadata_is_listed(kcat: Kcat, asks_for_all: bool) -> None:
    topic = new_topic("kcat-listed")
    kcat.run("-P", "-t", topic, typed=b"x\n")
    flags = () if asks_for_all else ("-t", topic)
    check_listing(json.loads(kcat.run("-L", "-J", *flags)), topic)


@pytest.mark.feature("formats of its own (-f)", "What it has beside")
def test_a_format_shows_key_offset_and_partition(kcat: Kcat) -> None:
    topic = new_topic("kcat-format")
    kcat.run("-P", "-t", topic, "-p", "3", "-K:", typed=b"k:one\nk:two\n")
    shown = kcat.run("-C", "-t", topic, "-e", "-q", "-f", r"%t/%p/%o/%k=%s %S\n").decode()
    assert re.findall(r"\S+/3/(\d)/k=(\w+) 3", shown) == [("0", "one"), ("1", "two")]


@pytest.mark.feature(features.DELAYS)
def test_delayed_records_come_when_they_are_due_and_are_stepped_over_until_then(
    kcat: Kcat, server: RunningServer
) -> None:
    topic = new_topic("kcat-delayed")
    make_mixed(server, topic)
    send = ("-P", "-t", topic, "-p", "0")
    kcat.run(*send, "-H", "TIMER_DELAY_SEC=86400", typed=b"a\nb\n")
    kcat.run(*send, "-H", "TIMER_DELAY_MS=700", "-H", "other=x", "-z", "gzip", typed=b"soon\n")
    kcat.run(*send, typed=b"now\n")
    kcat.run(*send, "-H", "TIMER_DELAY_SEC=86400", typed=b"c\n")
    with kcat.started("-C", "-t", topic, "-u", "-f", r"%o %s %h\n") as reader:
        wait_for_lines(reader, {"3 now ", "5 soon other=x"}, "both are read")
    assert len(reader.lines) == 2
    assert [each["payload"] for each in kcat.read(topic)] == ["now", "soon"]


def make_mixed(server: RunningServer, topic: str) -> None:
    """kcat creates topics only by using them, and then without a config."""
    command = [sys.executable, "-m", "rockgate.cli", "topics", "create", topic]
    flags = ["--partitions", "1", "--config", "message.type=MIXED", "-b", server.bootstrap]
    subprocess.run([*command, *flags], check=True, capture_output=True)
