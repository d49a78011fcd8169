"""What every client with the consumer protocol (KIP-848) may expect of groups."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from behaviours.driver import SECONDS_MAX, Driver, Member, Message, Sending
from behaviours.features import CONSUMER_PROTOCOL
from behaviours.grouping import poll_all, read_together, wait_for_share
from behaviours.steps import new_topic, send_all
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

SETTINGS = (
    "group.initial.rebalance.delay.ms=100",
    "group.consumer.heartbeat.interval.ms=300",
    "group.consumer.session.timeout.ms=8000",
)


@pytest.mark.feature(CONSUMER_PROTOCOL)
class ConsumerProtocol:
    """Mixed into a test class of each client."""

    driver: ClassVar[Driver]
    has_patterns: ClassVar[bool] = True
    """Whether the client sends patterns to the server."""

    def _topic(self, server: RunningServer, count: int, name: str = "modern") -> str:
        topic = new_topic(name)
        self._fill(server, topic, 0, count)
        return topic

    def _fill(self, server: RunningServer, topic: str, first: int, count: int) -> None:
        messages = [Message(value=b"%d" % n, partition=n % 4) for n in range(first, first + count)]
        send_all(self.driver, server.bootstrap, topic, messages, Sending())

    def _member(
        self,
        server: RunningServer,
        group: str,
        topic: str,
        *,
        protocol: str = "consumer",
        instance: str | None = None,
    ) -> Member:
        return self.driver.member(
            server.bootstrap, group, topic, protocol=protocol, instance=instance
        )

    def test_members_share_commit_and_take_over(self, server: RunningServer) -> None:
        topic = self._topic(server, 4)
        group = f"group-of-{topic}"
        first = self._member(server, group, topic)
        read_together([first], 4)
        first.commit()
        second = self._member(server, group, topic)
        wait_for_share([first, second], [2, 2], "the partitions are shared")
        self._fill(server, topic, 4, 40)
        ours, theirs = read_together([first, second], 40)
        assert len(ours) == 20 and len(theirs) == 20
        second.commit()
        first.commit()
        assert [first.committed(topic, n) for n in range(4)] == [11] * 4
        second.close()
        wait_for_share([first], [4], "the one that stays has all of them")
        self._fill(server, topic, 44, 8)
        (found,) = read_together([first], 8)
        assert {each.value for each in found} == {b"%d" % n for n in range(44, 52)}
        first.close()

    def test_a_static_member_that_closes_and_comes_back_has_its_partitions(
        self, server: RunningServer
    ) -> None:
        topic = self._topic(server, 4)
        group = f"group-of-{topic}"
        stays = self._member(server, group, topic, instance="stays")
        before = self._member(server, group, topic, instance="comes-back")
        wait_for_share([stays, before], [2, 2], "the partitions are shared")
        theirs, ours = before.assignment(), stays.assignment()
        before.close()
        after = self._member(server, group, topic, instance="comes-back")
        wait_for_share([stays, after], [2, 2], "the partitions are shared again")
        assert (after.assignment(), stays.assignment()) == (theirs, ours)
        after.close()
        stays.close()

    def test_a_pattern_finds_topics_old_and_new(self, server: RunningServer) -> None:
        if not self.has_patterns:
            pytest.skip("This client does not send patterns to the server.")
        topic = self._topic(server, 4, "pattern")
        member = self._member(server, f"group-of-{topic}", f"^{topic}.*")
        (found,) = read_together([member], 4)
        assert len(found) == 4
        other = f"{topic}-more"
        self._fill(server, other, 0, 4)
        (found,) = read_together([member], 4)
        assert len(found) == 4
        member.close()

    def test_a_group_migrates_to_the_consumer_protocol_and_back(
        self, server: RunningServer
    ) -> None:
        topic = self._topic(server, 4)
        group = f"group-of-{topic}"
        classic = self._member(server, group, topic, protocol="classic")
        read_together([classic], 4)
        classic.commit()
        modern = self._member(server, group, topic)
        wait_for_share([classic, modern], [2, 2], "both protocols share the partitions")
        self._fill(server, topic, 4, 40)
        old, new = read_together([classic, modern], 40)
        assert len(old) == 20 and len(new) == 20
        classic.commit()
        modern.commit()
        modern.close()
        wait_for_share([classic], [4], "the group is classic again")
        self._fill(server, topic, 44, 4)
        (found,) = read_together([classic], 4)
        assert {each.value for each in found} == {b"%d" % n for n in range(44, 48)}
        classic.close()

    @pytest.mark.long
    def test_members_go_on_after_kill_minus_nine_of_the_server(self, tmp_path: Path) -> None:
        with RunningServer(tmp_path, settings=list(SETTINGS)) as server:
            topic = self._topic(server, 40)
            group = f"group-of-{topic}"
            members = [self._member(server, group, topic) for _ in range(2)]
            wait_for_share(members, [2, 2], "the partitions are shared")
            shares = [each.assignment() for each in members]
            server.kill()
            server.restart()
            self._fill(server, topic, 40, 20)
            missing = {b"%d" % n for n in range(40, 60)}

            def has_all() -> bool:
                for found in poll_all(members):
                    missing.difference_update(each.value for each in found)
                return not missing

            wait_until(has_all, "the members have read what is new", SECONDS_MAX)
            assert [each.assignment() for each in members] == shares, "nobody had to rejoin"
            third = self._member(server, group, topic)

            def has_some() -> bool:
                poll_all([*members, third])
                return bool(third.assignment())

            wait_until(has_some, "another member gets a share", SECONDS_MAX)
            for each in [*members, third]:
                each.close()
            assert "Traceback" not in server.log
