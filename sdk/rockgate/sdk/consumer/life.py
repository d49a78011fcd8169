"""The states of a consumer, and waiting for them.

created ──begin──► opening ──opened──► running ──close──► closing ──closed──► closed
   ▲                  │
   └──may_retry───────┴──failed──► failed
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from rockgate.sdk.errors import Closed


class State(Enum):
    """What a consumer is."""

    CREATED = "not open"
    OPENING = "being opened"
    RUNNING = "already open"
    FAILED = "not open, for opening it failed"
    CLOSING = "being closed"
    CLOSED = "closed"


class Life:
    """The state of one consumer."""

    def __init__(self) -> None:
        self.state = State.CREATED
        self._changed = asyncio.Event()

    @contextmanager
    def opening(self, *, may_retry: type[Exception]) -> Iterator[None]:
        """Around what opens it; Closed unless it was never opened before.

        After an error of this kind it is as if that had not been tried.
        """
        if self.state is not State.CREATED:
            raise Closed(f"The consumer is {self.state.value}; a consumer can be opened only once.")
        self.turn(State.OPENING)
        try:
            yield
        except may_retry:
            self.turn(State.CREATED)
            raise
        except BaseException:
            self.turn(State.FAILED)
            raise
        self.turn(State.RUNNING)

    def check_alive(self) -> None:
        """Closed if it will never consume again."""
        if self.state not in (State.CREATED, State.OPENING, State.RUNNING):
            raise Closed(f"The consumer is {self.state.value}.")

    def turn(self, state: State) -> None:
        """Change the state."""
        self.state = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def settled(self) -> State:
        """The state in which it stays by itself: neither being opened nor being closed."""
        while self.state in (State.OPENING, State.CLOSING):
            await self._changed.wait()
        return self.state
