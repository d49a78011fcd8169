"""Members hear that their group has changed: each once, a few in each turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rockgate.gateway.remoting.groups import notifications as module
from rockgate.gateway.remoting.groups.notifications import Notices


class Member:
    def __init__(self) -> None:
        self.is_open = True
        self.told: list[str] = []

    def send_oneway(self, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        assert code == 40
        self.told.append(fields["consumerGroup"])


class Notified:
    def __init__(self, *sizes: int) -> None:
        self.groups: dict[str, list[Any]] = {
            f"g{number}": [Member() for _ in range(size)] for number, size in enumerate(sizes)
        }
        self.asked: list[Callable[[], None]] = []
        self.notices = Notices(lambda name: self.groups.get(name, []), self.asked.append)

    def turn(self) -> None:
        asked, self.asked[:] = list(self.asked), []
        for work in asked:
            work()

    def counts(self, name: str) -> list[int]:
        return [len(member.told) for member in self.groups[name]]


def test_a_group_that_changes_often_before_its_turn_is_notified_once() -> None:
    world = Notified(3, 2)
    for _ in range(5):
        world.notices.add("g0")
    world.notices.add("g1")
    world.notices.add("gone")
    assert world.counts("g0") == [0, 0, 0], "whoever changes it waits for nobody"
    assert len(world.asked) == 1
    world.turn()
    assert (world.counts("g0"), world.counts("g1"), world.asked) == ([1, 1, 1], [1, 1], [])


def test_many_members_are_notified_over_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 0.0)
    world = Notified(4)
    world.notices.add("g0")
    for told in range(1, 5):
        world.turn()
        assert sum(world.counts("g0")) == told
    world.turn()
    assert world.asked == []


def test_who_is_gone_is_not_notified_and_a_change_meanwhile_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 0.0)
    world = Notified(3)
    world.notices.add("g0")
    world.turn()
    world.groups["g0"][1].is_open = False
    world.notices.add("g0")
    while world.asked:
        world.turn()
    assert world.counts("g0") == [2, 0, 2]


def test_without_a_loop_it_happens_at_once() -> None:
    world = Notified(2)
    notices = Notices(lambda name: world.groups[name])
    notices.add("g0")
    assert world.counts("g0") == [1, 1]
