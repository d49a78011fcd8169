"""When a failed message is redelivered, and when it becomes a dead letter.

A message that is sent back carries one of the broker's delay levels, and nothing finer. Unless the
listener requests one, the broker uses the third level after the first try, the fourth after the
second, and so on; after the last try it is a dead letter of its group.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final

LEVELS_S: Final = (
    *(1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200),
)
"""RocketMQ's own levels, from the first on; a broker may be configured to have others."""
BROKER_CHOOSES: Final = 0
DEAD_LETTER: Final = -1
"""Special values: the broker chooses the level; the message becomes a dead letter."""
FIRST_LEVEL: Final = 3
EXPIRED_LEVEL: Final = 3
"""For a message whose listener hangs."""


class Retry(Exception):  # not an error of ours, but a listener's request
    """Raised by a listener: these messages are to be redelivered, at least after this time.

    Of a batch, the first `done` messages are still acknowledged. The time is rounded up to a
    delay level of the broker's.
    """

    def __init__(self, after: timedelta | None = None, *, done: int = 0) -> None:
        if after is not None and after < timedelta():
            raise ValueError(f"A message cannot be retried {-after} ago.")
        if done < 0:
            raise ValueError(f"{done} messages cannot be done.")
        super().__init__("soon" if after is None else f"after {after}")
        self.after = after
        self.done = done

    @property
    def level(self) -> int:
        """The delay level that is sent back with the messages."""
        return BROKER_CHOOSES if self.after is None else level_after(self.after)

    def with_done(self, done: int) -> Retry:
        """The same for a batch in which these messages come after others."""
        return Retry(self.after, done=done)


class DeadLetter(Retry):
    """Raised by a listener: these messages are dead letters of the group, without more tries.

    Of a batch, the first `done` messages are still acknowledged.
    """

    def __init__(self, *, done: int = 0) -> None:
        super().__init__(done=done)

    @property
    def level(self) -> int:
        """The delay level that is sent back with the messages."""
        return DEAD_LETTER

    def with_done(self, done: int) -> DeadLetter:
        """The same for a batch in which these messages come after others."""
        return DeadLetter(done=done)


def level_after(after: timedelta, levels_s: Sequence[float] = LEVELS_S) -> int:
    """The first level that waits at least this long; the last one if none does."""
    assert all(shorter < longer for shorter, longer in pairwise(levels_s)), levels_s
    if after < timedelta():
        raise ValueError(f"A message cannot be retried {-after} ago.")
    found = bisect.bisect_left(levels_s, after.total_seconds())
    return min(found, len(levels_s) - 1) + 1


def level_of_try(reconsume_times: int, level_max: int = len(LEVELS_S)) -> int:
    """The level that a broker uses by default after this many retries."""
    return min(FIRST_LEVEL + reconsume_times, level_max)


def is_last_try(reconsume_times: int, tries_max: int) -> bool:
    """Whether a message that fails now is a dead letter; `tries_max` below 0 has no end."""
    return 0 <= tries_max <= reconsume_times
