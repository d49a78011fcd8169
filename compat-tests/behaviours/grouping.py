"""What every client may expect of consumer groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from behaviours.driver import SECONDS_MAX, Driver, Member, Message, Received, Sending
from behaviours.steps import new_topic, send_all
from tests.gateway.server import RunningServer
from tests.waiting import wait_until


@contextlib.contextmanager
def joined(driver: Driver, bootstrap: str, group: str, topic: str) -> Iterator[Member]:
    """A member that leaves at the end."""
    member = driver.member(bootstrap, group, topic)
    try:
        yield member
    finally:
        member.close()


def poll_all(members: list[Member]) -> list[list[Received]]:
    """Poll them at the same time, as members in processes of their own would.

    In turns it takes luck: kafka-python forgets a join that ends between two of its polls.
    """
    with ThreadPoolExecutor(len(members)) as pool:
        return list(pool.map(lambda member: member.poll(0.5), members))


def read_together(members: list[Member], count: int) -> list[list[Received]]:
    """What each member gets until they have so many together."""
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

    def test_a_group_goes_on_where_it_committed(self, server: RunningServer) -> None:
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

    def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
        self, server: RunningServer
    ) -> None:
        topic = self._spread(server, 4)
        group = f"group-of-{topic}"
        with joined(self.driver, server.bootstrap, group, topic) as first:
            read_together([first], 4)
            first.commit()
            with joined(self.driver, server.bootstrap, group, topic) as second:

                def is_shared() -> bool:
                    poll_all([first, second])
                    shares = first.assignment(), second.assignment()
                    return all(len(share) == 2 for share in shares) and not shares[0] & shares[1]

                wait_until(is_shared, "the partitions are shared", SECONDS_MAX)
                self._fill(server, topic, 4, 40)
                ours, theirs = read_together([first, second], 40)
                assert len(ours) == 20 and len(theirs) == 20
                second.commit()
                first.commit()

            def has_all() -> bool:
                poll_all([first])
                return first.assignment() == {0, 1, 2, 3}

            wait_until(has_all, "the one that stays has all of them", SECONDS_MAX)
            self._fill(server, topic, 44, 8)
            (found,) = read_together([first], 8)
            assert len(found) == 8

    @pytest.mark.long
    def test_what_was_committed_is_there_after_kill_9(self, tmp_path: Path) -> None:
        settings = ["group.initial.rebalance.delay.ms=100"]
        with RunningServer(tmp_path, settings=settings) as server:
            topic = self._spread(server, 100)
            group = f"group-of-{topic}"
            with joined(self.driver, server.bootstrap, group, topic) as member:
                read_together([member], 100)
                member.commit()
                server.kill()
                server.restart()
                self._fill(server, topic, 100, 20)
                (found,) = read_together([member], 20)
                assert {each.value for each in found} == {b"%d" % n for n in range(100, 120)}
                assert [member.committed(topic, n) for n in range(4)] == [25, 25, 25, 25]
            assert "Traceback" not in server.log
