"""The history of clients: what they did and the results, for the checker."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    """How a transaction ended, as far as its client knows."""

    OK = "committed"
    FAIL = "aborted"
    INFO = "unknown"


@dataclass(slots=True)
class Send:
    """A value that was sent; its offset is known after the acknowledgement."""

    partition: int
    value: int
    offset: int = -1


class Read(NamedTuple):
    """A value that was polled."""

    partition: int
    offset: int
    value: int


@dataclass(slots=True)
class Poll:
    """The result of one poll, and when it ended."""

    reads: list[Read]
    ended: float


@dataclass(slots=True)
class Transaction:
    """One transaction of one worker: its polls, its sends, and its outcome."""

    worker: int
    session: int
    """The consumer that polled: after a restart a worker reads from the start again."""
    polls: list[Poll] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    ending: float = float("inf")
    """When its end was requested; its values must not be read before."""
    outcome: Outcome = Outcome.INFO


@dataclass(slots=True)
class History:
    """All transactions in the order of their start, and what exists at the end."""

    transactions: list[Transaction]
    final: list[Read]
