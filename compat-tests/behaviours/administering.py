"""What every client may expect of topics: created, changed, described and deleted."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest
from behaviours.driver import Admin, Driver, Message, Refused, Sending
from behaviours.features import CONFIGS, RECORDS, REFUSALS, TOPICS
from behaviours.steps import new_topic, read_all, read_until, reading, send_all
from tests.gateway.server import RunningServer

UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
TOPIC_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_CONFIG = 40


@contextlib.contextmanager
def administering(driver: Driver, bootstrap: str) -> Iterator[Admin]:
    """An admin client that is closed at the end."""
    admin = driver.admin(bootstrap)
    try:
        yield admin
    finally:
        admin.close()


class Administering:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    @pytest.mark.feature(TOPICS)
    def test_a_topic_is_made_grown_and_taken_away(self, server: RunningServer) -> None:
        topic = new_topic("life")
        with administering(self.driver, server.bootstrap) as admin:
            admin.create(topic, 3)
            assert topic in admin.topics()
            admin.grow(topic, 5)
            with reading(self.driver, server.bootstrap) as consumer:
                assert consumer.partitions(topic) == [0, 1, 2, 3, 4]
            admin.delete(topic)
            assert topic not in admin.topics()

    @pytest.mark.feature(TOPICS)
    def test_a_topic_made_again_is_empty(self, server: RunningServer) -> None:
        topic = new_topic("again")
        with administering(self.driver, server.bootstrap) as admin:
            admin.create(topic, 1)
            send_all(self.driver, server.bootstrap, topic, [Message()] * 3, Sending())
            admin.delete(topic)
            admin.create(topic, 1)
            send_all(self.driver, server.bootstrap, topic, [Message(value=b"new")], Sending())
            (found,) = read_all(self.driver, server.bootstrap, topic)
            assert (found.offset, found.value) == (0, b"new")

    @pytest.mark.feature(REFUSALS)
    def test_what_cannot_be_is_refused_with_its_code(self, server: RunningServer) -> None:
        topic = new_topic("refused")
        with administering(self.driver, server.bootstrap) as admin:
            admin.create(topic, 2)
            refusals = {
                TOPIC_EXISTS: lambda: admin.create(topic, 2),
                INVALID_TOPIC: lambda: admin.create("not a name", 1),
                INVALID_CONFIG: lambda: admin.create(f"{topic}-x", 1, {"retention.ms": "soon"}),
                INVALID_PARTITIONS: lambda: admin.grow(topic, 1),
                UNKNOWN_TOPIC_OR_PARTITION: lambda: admin.delete(f"{topic}-missing"),
            }
            for code, attempt in refusals.items():
                with pytest.raises(Refused) as refused:
                    attempt()
                assert refused.value.code == code
            assert f"{topic}-x" not in admin.topics()

    @pytest.mark.feature(CONFIGS)
    def test_a_topic_s_configs_are_described_and_hold_at_once(self, server: RunningServer) -> None:
        topic = new_topic("configs")
        with administering(self.driver, server.bootstrap) as admin:
            admin.create(topic, 1, {"max.message.bytes": "2000"})
            assert admin.configs(topic)["max.message.bytes"] == "2000"
            assert admin.configs(topic)["retention.ms"] == "604800000"
            large = [Message(value=b"x" * 3000)]
            with pytest.raises(Refused) as refused:
                send_all(self.driver, server.bootstrap, topic, large, Sending())
            assert refused.value.code == MESSAGE_TOO_LARGE
            admin.alter(topic, {"max.message.bytes": "4000"})
            assert admin.configs(topic)["max.message.bytes"] == "4000"
            send_all(self.driver, server.bootstrap, topic, large, Sending())

    @pytest.mark.feature(CONFIGS)
    def test_a_topic_may_want_the_server_s_time(self, server: RunningServer) -> None:
        topic, before = new_topic("append-time"), int(time.time() * 1000)
        with administering(self.driver, server.bootstrap) as admin:
            admin.create(topic, 1, {"message.timestamp.type": "LogAppendTime"})
        messages = [Message(timestamp_ms=1_500_000_000_000 + n) for n in range(20)]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())
        after = int(time.time() * 1000)
        found = read_all(self.driver, server.bootstrap, topic)
        assert len(found) == 20
        assert all(before <= each.timestamp_ms <= after for each in found)

    @pytest.mark.feature(RECORDS)
    def test_records_before_an_offset_are_taken_away(self, server: RunningServer) -> None:
        topic = new_topic("shortened")
        messages = [Message(value=b"%d" % n, partition=0) for n in range(20)]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())
        with administering(self.driver, server.bootstrap) as admin:
            admin.delete_records(topic, 0, 15)
        with reading(self.driver, server.bootstrap) as consumer:
            assert (consumer.beginning(topic, 0), consumer.end(topic, 0)) == (15, 20)
            consumer.assign(topic, [0], 15)
            found = read_until(consumer, lambda got: len(got) >= 5, "what is left is read")
        assert [each.value for each in found] == [b"%d" % n for n in range(15, 20)]

    @pytest.mark.feature(CONFIGS)
    @pytest.mark.parametrize("kept_as", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
    def test_a_topic_may_choose_how_its_batches_are_kept(
        self, server: RunningServer, kept_as: str
    ) -> None:
        if kept_as not in ("uncompressed", *self.driver.codecs):
            pytest.skip(self.driver.why_not)
        topic = new_topic("kept-as")
        with administering(self.driver, server.bootstrap) as admin:
            admin.create(topic, 1, {"compression.type": kept_as})
        messages = [Message(value=b"%d" % n * 10, headers=(("h", b"x"),)) for n in range(100)]
        send_all(self.driver, server.bootstrap, topic, messages, Sending(codec="gzip"))
        found = read_all(self.driver, server.bootstrap, topic)
        assert [each.value for each in found] == [each.value for each in messages]
        assert all(each.headers == (("h", b"x"),) for each in found)
