"""Large values are released a little at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from rockgate.gateway.runtime.release import PIECE_COUNT, release
from rockgate.protocol.kafka.schema import Array, Int8, struct
from rockgate.protocol.kafka.schema import field as declared

COUNT = 5_000
BOUND = 2 * PIECE_COUNT


class Deaths:
    """Counts objects that were freed, and the most between two lines of Python."""

    def __init__(self) -> None:
        self.count = 0
        self.most = 0
        self._before = 0

    def watch(self, frame: FrameType, event: str, argument: object) -> Any:
        """Another thread can have the interpreter wherever a line of `release` begins."""
        if frame.f_code is Part.__del__.__code__:
            return None
        self.most = max(self.most, self.count - self._before)
        self._before = self.count
        return self.watch


@dataclass
class Part:
    deaths: Deaths

    def __del__(self) -> None:
        self.deaths.count += 1


@dataclass
class Whole:
    parts: list[Any] = field(default_factory=list)
    by_name: dict[str, Any] = field(default_factory=dict)


@struct
class Declared:
    parts: list[Any] = declared(Array(Int8))


def watched(let_go: Callable[[list[Any]], None], held: list[Any], deaths: Deaths) -> None:
    before = sys.gettrace()
    sys.settrace(deaths.watch)
    try:
        let_go(held)
    finally:
        sys.settrace(before)


def many(deaths: Deaths) -> list[Part]:
    return [Part(deaths) for _ in range(COUNT)]


@pytest.mark.parametrize(
    "shape", ["a list", "a field", "a declared message", "a map", "nested", "one in many"]
)
def test_it_is_freed_in_small_pieces_whatever_its_shape(shape: str) -> None:
    deaths = Deaths()
    shapes: dict[str, Callable[[], list[Any]]] = {
        "a list": lambda: [many(deaths)],
        "a field": lambda: [Whole(many(deaths))],
        "a declared message": lambda: [Declared(parts=many(deaths))],
        "a map": lambda: [Whole(by_name={str(n): each for n, each in enumerate(many(deaths))})],
        "nested": lambda: [Whole([Whole([Whole(many(deaths))])])],
        "one in many": lambda: [Whole([Whole(), Whole(many(deaths)), Whole()])],
    }
    held = shapes[shape]()
    watched(release, held, deaths)
    assert deaths.count == COUNT
    assert deaths.most <= BOUND


def test_in_one_piece_it_would_be_seen() -> None:
    deaths = Deaths()
    held: list[Any] = [Whole(many(deaths))]
    watched(_clear, held, deaths)
    assert deaths.most == COUNT


def _clear(held: list[Any]) -> None:
    held.clear()
    held.append(None)


def test_what_someone_else_holds_is_not_changed() -> None:
    deaths = Deaths()
    shared = Whole(many(deaths))
    release([Whole([shared]), shared])
    assert len(shared.parts) == COUNT and deaths.count == 0
