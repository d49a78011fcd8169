"""What clients did and what they were told: the history that the checker looks at."""

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
    """A value that was sent; its offset is known once the server has told it."""

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
    """What one poll brought, and when it was over."""

    reads: list[Read]
    ended: float


@dataclass(slots=True)
class Transaction:
    """One transaction of one worker: what it polled, then what it sent, then how it ended."""

    worker: int
    session: int
    """Which consumer polled: a worker that begins again reads from the start again."""
    polls: list[Poll] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    ending: float = float("inf")
    """When its end was asked for; nobody may have read its values before."""
    outcome: Outcome = Outcome.INFO


@dataclass(slots=True)
class History:
    """All transactions in the order they began, and what is there when everything is over."""

    transactions: list[Transaction]
    final: list[Read]
