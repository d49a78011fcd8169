"""What every client with share groups (KIP-932) may expect of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from behaviours.driver import SECONDS_MAX, Message, Sending, Shared
from behaviours.features import SHARE_GROUPS
from behaviours.program import ProgramDriver, Sharer
from behaviours.steps import new_topic, send_all
from beside.configuring import configure_group, create_topic
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
INVALID_RECORD_STATE = 121
LOCK_MS = 15_000
"""The shortest that Kafka takes by default."""
SETTINGS = ("group.share.heartbeat.interval.ms=300", "group.share.session.timeout.ms=8000")


@pytest.mark.feature(SHARE_GROUPS)
class ShareGroups:
    """Mixed into a test class of each client."""

    driver: ClassVar[ProgramDriver]
    renewed_come_again: ClassVar[bool] = False
    """Whether a record that was renewed is given by the next poll, to be acknowledged again."""
    refuses_what_is_over: ClassVar[bool] = True
    """Whether the client reports an acknowledgement of a record whose lock has expired."""

    # Steps

    def _group(self, server: RunningServer, what: str, **configs: str) -> str:
        """The name of a group and of its topic of one partition; it begins at the beginning."""
        name = new_topic(what)
        create_topic(address(server), name)
        said = {"share_auto_offset_reset": "earliest", **configs}
        configure_group(address(server), name, **said)
        return name

    def _send(self, server: RunningServer, topic: str, *values: bytes, partition: int = 0) -> None:
        messages = [Message(value=each, partition=partition) for each in values]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())

    @contextmanager
    def _members(
        self,
        server: RunningServer,
        name: str,
        count: int = 1,
        *,
        is_explicit: bool = True,
        records_max: int | None = None,
    ) -> Iterator[list[Sharer]]:
        with ExitStack() as opened:
            members = []
            for _ in range(count):
                member = self.driver.sharer(
                    server.bootstrap,
                    name,
                    name,
                    is_explicit=is_explicit,
                    records_max=records_max,
                )
                opened.callback(member.close)
                members.append(member)
            yield members

    # Acknowledging

    def test_records_that_were_polled_are_accepted_by_the_next_poll(
        self, server: RunningServer
    ) -> None:
        name = self._group(server, "implicit")
        values = [b"%d" % n for n in range(20)]
        self._send(server, name, *values)
        with self._members(server, name, is_explicit=False) as (member,):
            found = polled(member, 20)
            member.commit()
        assert sorted(each.offset for each in found) == list(range(20))
        assert {each.deliveries for each in found} == {1}
        assert [each.value for each in found] == values
        self._send(server, name, b"new")
        with self._members(server, name, is_explicit=False) as (member,):
            assert [each.value for each in polled(member, 1)] == [b"new"]
            member.commit()

    def test_a_record_is_accepted_released_or_rejected(self, server: RunningServer) -> None:
        name = self._group(server, "explicit")
        self._send(server, name, *(b"%d" % n for n in range(6)))
        with self._members(server, name) as (member,):
            for each in polled(member, 6):
                member.acknowledge(each, (ACCEPT, RELEASE, REJECT)[each.offset % 3])
            assert set(member.commit().values()) == {0}
            again = polled(member, 2)
            assert [(each.offset, each.deliveries) for each in again] == [(1, 2), (4, 2)]
            for each in again:
                member.acknowledge(each, ACCEPT)
            assert set(member.commit().values()) == {0}
            self._send(server, name, b"last")
            (last,) = polled(member, 1)
            assert (last.offset, last.deliveries) == (6, 1)
            member.acknowledge(last, ACCEPT)
            member.commit()

    def test_a_record_is_delivered_as_often_as_the_limit_says(self, server: RunningServer) -> None:
        name = self._group(server, "limit", share_delivery_count_limit="3")
        self._send(server, name, b"bad")
        with self._members(server, name) as (member,):
            for deliveries in (1, 2, 3):
                (found,) = polled(member, 1)
                assert (found.offset, found.deliveries) == (0, deliveries)
                member.acknowledge(found, RELEASE)
                member.commit()
            self._send(server, name, b"good")
            (found,) = polled(member, 1)
            assert (found.offset, found.deliveries) == (1, 1)
            member.acknowledge(found, ACCEPT)
            member.commit()

    # Several members

    def test_two_members_share_one_partition(self, server: RunningServer) -> None:
        name = self._group(server, "two")
        producer = self.driver.producer(server.bootstrap, Sending())
        seen: list[list[Shared]] = [[], []]
        sent = 0
        with self._members(server, name, 2, records_max=5) as members:

            def is_shared() -> bool:
                nonlocal sent
                if not all(len(mine) >= 5 for mine in seen):
                    # Until both have joined, one of them gets everything.
                    values = [b"%d" % n for n in range(sent, sent + 10)]
                    promises = [producer.send(name, Message(value=v, partition=0)) for v in values]
                    producer.flush()
                    assert all(each.result().partition == 0 for each in promises)
                    sent += 10
                for member, mine in zip(members, seen, strict=True):
                    found = member.poll(0.3)
                    mine.extend(found)
                    for each in found:
                        member.acknowledge(each, ACCEPT)
                    assert not any(member.commit().values())
                return all(len(mine) >= 5 for mine in seen) and sum(map(len, seen)) >= sent

            wait_until(is_shared, "both have read, and all is read", SECONDS_MAX)
        producer.close()
        offsets = [each.offset for mine in seen for each in mine]
        assert sorted(offsets) == list(range(sent)), "each was given to one of them"

    def test_what_a_killed_member_held_is_given_to_another(self, server: RunningServer) -> None:
        name = self._group(server, "killed", share_record_lock_duration_ms=str(LOCK_MS))
        self._send(server, name, *(b"%d" % n for n in range(5)))
        other = self.driver.apart()
        try:
            dies = other.sharer(server.bootstrap, name, name, is_explicit=True)
            assert len(polled(dies, 5)) == 5
        finally:
            other.kill()
        with self._members(server, name) as (member,):
            found = polled(member, 5)
            assert [(each.offset, each.deliveries) for each in found] == [(n, 2) for n in range(5)]
            for each in found:
                member.acknowledge(each, ACCEPT)
            assert not any(member.commit().values())

    def test_a_lock_expires_under_a_member_that_lives(self, server: RunningServer) -> None:
        name = self._group(server, "expires", share_record_lock_duration_ms=str(LOCK_MS))
        self._send(server, name, b"slow")
        # A limit lets clients fetch only when they poll: what they had ready would expire as well.
        with self._members(server, name, 2, records_max=1) as (slow, quick):
            (held,) = polled(slow, 1)
            (found,) = polled(quick, 1)
            assert (found.offset, found.deliveries) == (0, 2)
            slow.acknowledge(held, ACCEPT)
            outcome = slow.commit()
            if self.refuses_what_is_over:
                assert outcome == {0: INVALID_RECORD_STATE}
            quick.acknowledge(found, ACCEPT)
            assert quick.commit() == {0: 0}

    def test_a_renewed_lock_holds_for_as_long_as_it_is_renewed(self, server: RunningServer) -> None:
        name = self._group(server, "renews", share_record_lock_duration_ms=str(LOCK_MS))
        self._send(server, name, b"slow")
        with self._members(server, name, 2) as (slow, other):
            (held,) = polled(slow, 1)
            until = time.monotonic() + 1.5 * LOCK_MS / 1000
            while time.monotonic() < until:
                slow.acknowledge(held, RENEW)
                assert not any(slow.commit().values())
                assert other.poll(0.5) == []
                if self.renewed_come_again:
                    (held,) = polled(slow, 1)
                    assert (held.offset, held.deliveries) == (0, 1)
            slow.acknowledge(held, ACCEPT)
            assert not any(slow.commit().values())
            self._send(server, name, b"next")
            found: list[Shared] = []

            def is_read() -> bool:
                for member in (other, slow):
                    for each in member.poll(0.3):
                        found.append(each)
                        member.acknowledge(each, ACCEPT)
                        member.commit()
                return bool(found)

            wait_until(is_read, "the next record is read", SECONDS_MAX)
            assert [(each.offset, each.deliveries) for each in found] == [(1, 1)]

    # What a group reads

    @pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
    def test_records_of_aborted_transactions(self, server: RunningServer, level: str) -> None:
        name = self._group(server, level.replace("_", "-"), share_isolation_level=level)
        sending = Sending(is_idempotent=True, transactional_id=f"id-of-{name}")
        producer = self.driver.producer(server.bootstrap, sending)
        for value, is_kept in ((b"a", True), (b"b", False), (b"c", True)):
            producer.begin()
            messages = [Message(value=value + b"%d" % n, partition=0) for n in range(3)]
            # A client does not send what is aborted before.
            for promise in [producer.send(name, each) for each in messages]:
                promise.result()
            (producer.commit if is_kept else producer.abort)()
        producer.close()
        expected = [b"a0", b"a1", b"a2", b"c0", b"c1", b"c2"]
        if level == "read_uncommitted":
            expected[3:3] = [b"b0", b"b1", b"b2"]
        with self._members(server, name, is_explicit=False) as (member,):
            found = polled(member, len(expected))
            member.commit()
        assert [each.value for each in found] == expected

    def test_a_new_group_begins_where_it_is_told_to(self, server: RunningServer) -> None:
        topic = new_topic("begins")
        self._send(server, topic, b"old")
        seen: dict[str, list[bytes | None]] = {}
        with ExitStack() as opened:
            members = []
            for reset in ("latest", "earliest", "by_duration:PT1H"):
                group = f"{topic}-{reset.partition(':')[0]}"
                configure_group(address(server), group, share_auto_offset_reset=reset)
                member = self.driver.sharer(server.bootstrap, group, topic)
                opened.callback(member.close)
                members.append((member, seen.setdefault(reset, [])))

            def has_begun() -> bool:
                # A group that begins at the end is there after a fetch or two.
                self._send(server, topic, b"new")
                for member, values in members:
                    values += [each.value for each in member.poll(0.3)]
                return all(b"new" in values for _, values in members)

            wait_until(has_begun, f"all groups have begun: {seen}", SECONDS_MAX)
        assert set(seen["latest"]) == {b"new"}
        assert seen["earliest"][0] == seen["by_duration:PT1H"][0] == b"old"

    @pytest.mark.long
    def test_members_go_on_after_kill_minus_nine_of_the_server(self, tmp_path: Path) -> None:
        with RunningServer(tmp_path, settings=[*SETTINGS, "num.partitions=4"]) as server:
            name = self._group(server, "survives")
            self._send(server, name, *(b"%d" % n for n in range(10)))
            with self._members(server, name) as (member,):
                first = polled(member, 10)
                for each in first[:5]:
                    member.acknowledge(each, ACCEPT)
                for each in first[5:]:
                    member.acknowledge(each, RELEASE)
                assert not any(member.commit().values())
                server.kill()
                server.restart()
                self._send(server, name, b"new")
                found = polled(member, 6)
                assert [(each.offset, each.deliveries) for each in found] == [
                    *((n, 2) for n in range(5, 10)),
                    (10, 1),
                ]
                for each in found:
                    member.acknowledge(each, ACCEPT)
                member.commit()
            assert "Traceback" not in server.log


def address(server: RunningServer) -> tuple[str, int]:
    """Where a server, or its peer, serves Kafka's clients."""
    host, _, port = server.bootstrap.rpartition(":")
    return host, int(port)


def polled(member: Sharer, count: int) -> list[Shared]:
    """Poll until a member was given a number of records; by partition and offset.

    They come together: all were written before, or they are given back together.
    """
    found: list[Shared] = []

    def has_enough() -> bool:
        found.extend(member.poll(0.5))
        return len(found) >= count

    wait_until(has_enough, f"a member is given {count} records", SECONDS_MAX)
    assert len(found) == count, found
    return sorted(found, key=lambda each: (each.partition, each.offset))
