"""What every client may expect of producing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

import pytest
from behaviours.driver import Driver, Message, Refused, Sending
from behaviours.features import CONTENT, IDEMPOTENT, KEYS, ROUND_TRIP, SIZES
from behaviours.steps import new_topic, read_all, send_all
from tests.gateway.server import RunningServer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MESSAGE_TOO_LARGE = 10
BATCH_BYTES_MAX = 1_048_588
BATCH_OVERHEAD = 72
"""Bytes of a batch around one value of about a mebibyte without key and headers."""


def mixed(count: int) -> list[Message]:
    return [
        Message(key=b"k%d" % (n % 7), value=b"value %d " % n * 20, headers=(("n", b"%d" % n),))
        for n in range(count)
    ]


def acks_and_codecs() -> list[object]:
    """All combinations; the short run has every codec once and every acks once."""
    return [
        pytest.param(
            acks,
            codec,
            id=f"acks {acks}, {codec}",
            marks=[] if acks == -1 or codec == "none" else [pytest.mark.long],
        )
        for acks in (-1, 0, 1)
        for codec in CODECS
    ]


class Writing:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    @pytest.mark.feature(ROUND_TRIP)
    @pytest.mark.parametrize(("acks", "codec"), acks_and_codecs())
    def test_what_is_sent_is_read_again(self, server: RunningServer, acks: int, codec: str) -> None:
        if codec not in self.driver.codecs:
            pytest.skip(self.driver.why_not)
        topic, messages = new_topic("codec"), mixed(300)
        places = send_all(
            self.driver, server.bootstrap, topic, messages, Sending(acks=acks, codec=codec)
        )
        found = read_all(self.driver, server.bootstrap, topic)
        assert len(found) == len(messages)
        assert {each.value for each in found} == {each.value for each in messages}
        if acks:
            by_place = {(each.partition, each.offset): each for each in found}
            for message, place in zip(messages, places, strict=True):
                got = by_place[place]
                assert (got.key, got.value) == (message.key, message.value)
                assert got.headers == message.headers

    @pytest.mark.feature(IDEMPOTENT)
    def test_an_idempotent_producer_writes_everything_once(self, server: RunningServer) -> None:
        topic, messages = new_topic("idempotent"), mixed(500)
        places = send_all(
            self.driver, server.bootstrap, topic, messages, Sending(is_idempotent=True)
        )
        assert len(set(places)) == len(messages)
        assert len(read_all(self.driver, server.bootstrap, topic)) == len(messages)

    @pytest.mark.feature(KEYS)
    def test_messages_of_one_key_are_one_partition_in_order(self, server: RunningServer) -> None:
        topic = new_topic("keys")
        messages = [Message(key=b"k%d" % (n % 13), value=b"%d" % n) for n in range(650)]
        send_all(self.driver, server.bootstrap, topic, messages, Sending(linger_ms=0))
        by_key: dict[bytes | None, list[tuple[int, int]]] = {}
        for each in read_all(self.driver, server.bootstrap, topic):
            by_key.setdefault(each.key, []).append((each.partition, int(each.value or b"")))
        assert len(by_key) == 13
        for key, found in by_key.items():
            assert len({partition for partition, _ in found}) == 1, key
            assert [n for _, n in found] == sorted(n for _, n in found), key
            assert len(found) == 50

    @pytest.mark.feature(SIZES)
    def test_a_batch_of_the_largest_size_is_taken_and_one_byte_more_is_not(
        self, server: RunningServer
    ) -> None:
        topic = new_topic("sizes")
        largest = Message(value=b"x" * (BATCH_BYTES_MAX - BATCH_OVERHEAD), partition=0)
        over = Message(value=b"y" * (BATCH_BYTES_MAX - BATCH_OVERHEAD + 1), partition=0)
        send_all(self.driver, server.bootstrap, topic, [largest], Sending())
        with pytest.raises(Refused) as refused:
            send_all(self.driver, server.bootstrap, topic, [over], Sending())
        assert refused.value.code == MESSAGE_TOO_LARGE
        (found,) = read_all(self.driver, server.bootstrap, topic)
        assert found.value == largest.value

    @pytest.mark.feature(CONTENT)
    def test_headers_may_be_null_empty_and_there_twice(self, server: RunningServer) -> None:
        topic = new_topic("headers")
        headers: tuple[tuple[str, bytes | None], ...]
        headers = (("a", b"1"), ("a", b"2"), ("empty", b""), ("", b"no name"))
        if self.driver.sends_null_headers:
            headers += (("null", None),)
        send_all(self.driver, server.bootstrap, topic, [Message(headers=headers)], Sending())
        (found,) = read_all(self.driver, server.bootstrap, topic)
        assert found.headers == headers

    @pytest.mark.feature(CONTENT)
    def test_null_and_empty_are_not_the_same(self, server: RunningServer) -> None:
        topic = new_topic("nulls")
        pairs = [(b"k", None), (None, b"v"), (b"", b""), (b"k", b"")]
        messages = [Message(key=key, value=value, partition=0) for key, value in pairs]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())
        found = read_all(self.driver, server.bootstrap, topic)
        assert [(each.key, each.value) for each in found] == pairs

    @pytest.mark.feature(CONTENT)
    def test_a_client_s_own_time_is_kept(self, server: RunningServer) -> None:
        topic = new_topic("times")
        times = [1_500_000_000_000 + 1000 * n for n in (5, 3, 9, 1)]
        messages = [Message(timestamp_ms=each, partition=0) for each in times]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())
        found = read_all(self.driver, server.bootstrap, topic)
        assert [each.timestamp_ms for each in found] == times

    @pytest.mark.feature(CONTENT)
    @pytest.mark.long
    def test_the_server_s_time_is_given_where_its_settings_say_so(self, tmp_path: Path) -> None:
        with RunningServer(tmp_path, settings=["topics.timestamp_type=LogAppendTime"]) as server:
            topic, before = new_topic("append-time"), int(time.time() * 1000)
            messages = [Message(timestamp_ms=1_500_000_000_000 + n) for n in range(20)]
            send_all(self.driver, server.bootstrap, topic, messages, Sending())
            after = int(time.time() * 1000)
            found = read_all(self.driver, server.bootstrap, topic)
            assert len(found) == 20
            assert all(before <= each.timestamp_ms <= after for each in found)
