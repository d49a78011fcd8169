"""What every client may expect of consumer groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from behaviours.administering import administering
from behaviours.driver import (
    SECONDS_MAX,
    Driver,
    DyingDriver,
    GroupState,
    Member,
    Message,
    Received,
    Refused,
    Sending,
)
from behaviours.features import COMMITS, DYING, GROUPS, GROUPS_AFTER, SHARING, STATIC
from behaviours.steps import new_topic, send_all
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

GROUP_ID_NOT_FOUND = 69
SESSION_MS = 6_000
"""The shortest session that Kafka's defaults, and ours, allow."""


@contextlib.contextmanager
def joined(
    driver: Driver, bootstrap: str, group: str, topic: str, session_ms: int | None = None
) -> Iterator[Member]:
    """A member that leaves at the end."""
    member = driver.member(bootstrap, group, topic, session_ms=session_ms)
    try:
        yield member
    finally:
        member.close()


@contextlib.contextmanager
def in_a_process(driver: Driver) -> Iterator[DyingDriver]:
    """The client in its own process, which is stopped at the end."""
    other = driver.apart()
    try:
        yield other
    finally:
        other.kill()


def wait_for_share(members: list[Member], shares: list[int], what: str) -> None:
    """Poll them until each has this many partitions and no two share one."""

    def is_shared() -> bool:
        poll_all(members)
        found = [member.assignment() for member in members]
        return [len(each) for each in found] == shares and len(set().union(*found)) == sum(shares)

    wait_until(is_shared, what, SECONDS_MAX)


def poll_all(members: list[Member]) -> list[list[Received]]:
    """Poll them concurrently, as members in different processes would.

    Polled in turn, kafka-python loses a join that ends between two of its polls.
    """
    with ThreadPoolExecutor(len(members)) as pool:
        return list(pool.map(lambda member: member.poll(0.5), members))


def read_together(members: list[Member], count: int) -> list[list[Received]]:
    """What each member gets until they have this many records together."""
    found: list[list[Received]] = [[] for _ in members]

    def read_on() -> bool:
        for got, more in zip(found, poll_all(members), strict=True):
            got.extend(more)
        return sum(map(len, found)) >= count

    wait_until(read_on, f"the group has read {count} records", SECONDS_MAX)
    return found


class Grouping:
    """Mixed into each client's test class."""

    driver: ClassVar[Driver]

    def _spread(self, server: RunningServer, count: int) -> str:
        topic = new_topic("grouped")
        self._fill(server, topic, 0, count)
        return topic

    def _fill(self, server: RunningServer, topic: str, first: int, count: int) -> None:
        messages = [Message(value=b"%d" % n, partition=n % 4) for n in range(first, first + count)]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())

    def _commit(self, server: RunningServer, group: str, topic: str, count: int) -> None:
        """Have a member read some records, commit and leave."""
        with joined(self.driver, server.bootstrap, group, topic) as member:
            read_together([member], count)
            member.commit()

    @pytest.mark.feature(COMMITS)
    def test_a_group_continues_where_it_committed(self, server: RunningServer) -> None:
        topic = self._spread(server, 100)
        group = f"group-of-{topic}"
        with joined(self.driver, server.bootstrap, group, topic) as member:
            (found,) = read_together([member], 100)
            assert {each.value for each in found} == {b"%d" % n for n in range(100)}
            member.commit()
            assert [member.committed(topic, n) for n in range(4)] == [25, 25, 25, 25]
        self._fill(server, topic, 100, 20)
        with joined(self.driver, server.bootstrap, group, topic) as member:
            (found,) = read_together([member], 20)
            assert {each.value for each in found} == {b"%d" % n for n in range(100, 120)}

    @pytest.mark.feature(SHARING)
    def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
        self, server: RunningServer
    ) -> None:
        topic = self._spread(server, 4)
        group = f"group-of-{topic}"
        with joined(self.driver, server.bootstrap, group, topic) as first:
            read_together([first], 4)
            first.commit()
            with joined(self.driver, server.bootstrap, group, topic) as second:
                wait_for_share([first, second], [2, 2], "the partitions are shared")
                self._fill(server, topic, 4, 40)
                ours, theirs = read_together([first, second], 40)
                assert len(ours) == 20 and len(theirs) == 20
                second.commit()
                first.commit()

            wait_for_share([first], [4], "the one that stays has all of them")
            self._fill(server, topic, 44, 8)
            (found,) = read_together([first], 8)
            assert len(found) == 8

    @pytest.mark.feature(DYING)
    @pytest.mark.long
    def test_a_member_that_dies_is_done_without_and_may_come_back(
        self, server: RunningServer
    ) -> None:
        topic = self._spread(server, 40)
        group = f"group-of-{topic}"
        with joined(self.driver, server.bootstrap, group, topic, SESSION_MS) as stays:
            with in_a_process(self.driver) as other:
                dies = other.member(server.bootstrap, group, topic, session_ms=SESSION_MS)
                wait_for_share([stays, dies], [2, 2], "the partitions are shared")
                other.kill()
            wait_for_share([stays], [4], "the dead one's partitions are taken over")
            self._fill(server, topic, 40, 8)
            # What the dead one had read but not committed is delivered again.
            missing = {b"%d" % n for n in range(40, 48)}

            def has_all() -> bool:
                missing.difference_update(each.value for each in stays.poll(0.5))
                return not missing

            wait_until(has_all, "the one that stays has read all that is new", SECONDS_MAX)
            stays.commit()
            with in_a_process(self.driver) as again:
                back = again.member(server.bootstrap, group, topic, session_ms=SESSION_MS)
                wait_for_share([stays, back], [2, 2], "the one that came back has its share")
                back.close()
            wait_for_share([stays], [4], "it has left again")

    @pytest.mark.feature(STATIC)
    @pytest.mark.long
    def test_a_static_member_that_comes_back_finds_its_partitions(
        self, server: RunningServer
    ) -> None:
        if "static_member" in self.driver.cannot:
            pytest.skip(self.driver.cannot["static_member"])
        topic = self._spread(server, 40)
        group = f"group-of-{topic}"

        def member(of: Driver, instance: str) -> Member:
            return of.member(server.bootstrap, group, topic, session_ms=30_000, instance=instance)

        stays = member(self.driver, "stays")
        with in_a_process(self.driver) as other:
            before = member(other, "comes-back")
            wait_for_share([stays, before], [2, 2], "the partitions are shared")
            theirs, ours = before.assignment(), stays.assignment()
            other.kill()
        with in_a_process(self.driver) as again:
            after = member(again, "comes-back")
            wait_for_share([stays, after], [2, 2], "the partitions are shared again")
            # Without its instance id it would have been a third member until the session expired.
            assert (after.assignment(), stays.assignment()) == (theirs, ours)
        stays.close()

    @pytest.mark.feature(GROUPS)
    def test_an_administrator_sees_a_group(self, server: RunningServer) -> None:
        topic = self._spread(server, 40)
        group = f"group-of-{topic}"
        with administering(self.driver, server.bootstrap) as admin:
            self._commit(server, group, topic, 40)
            assert group in admin.groups()
            assert admin.group(group) == GroupState("Empty", 0)
            assert admin.group_offsets(group, topic) == {n: 10 for n in range(4)}
            with joined(self.driver, server.bootstrap, group, topic) as member:
                wait_for_share([member], [4], "it has joined")
                assert admin.group(group) == GroupState("Stable", 1)

    @pytest.mark.feature(GROUPS)
    def test_an_administrator_takes_a_group_away(self, server: RunningServer) -> None:
        if "delete_group" in self.driver.cannot:
            pytest.skip(self.driver.cannot["delete_group"])
        topic = self._spread(server, 4)
        group = f"group-of-{topic}"
        with administering(self.driver, server.bootstrap) as admin:
            self._commit(server, group, topic, 4)
            admin.delete_group(group)
            assert group not in admin.groups()
            with pytest.raises(Refused) as refused:
                admin.delete_group(group)
            assert refused.value.code == GROUP_ID_NOT_FOUND

    @pytest.mark.feature(GROUPS_AFTER)
    @pytest.mark.long
    @pytest.mark.parametrize("how", ["kill -9", "restart"])
    def test_what_was_committed_is_there_when_the_server_comes_back(
        self, tmp_path: Path, how: str
    ) -> None:
        settings = ["group.initial.rebalance.delay.ms=100"]
        with RunningServer(tmp_path, settings=settings) as server:
            topic = self._spread(server, 100)
            group = f"group-of-{topic}"
            with joined(self.driver, server.bootstrap, group, topic) as member:
                read_together([member], 100)
                member.commit()
                if how == "restart":
                    assert server.stop() == 0
                else:
                    server.kill()
                server.restart()
                self._fill(server, topic, 100, 20)
                (found,) = read_together([member], 20)
                assert {each.value for each in found} == {b"%d" % n for n in range(100, 120)}
                assert [member.committed(topic, n) for n in range(4)] == [25, 25, 25, 25]
            assert "Traceback" not in server.log
