"""A waiter for a group's response, which is immediate or a future.

A future that was cancelled with its connection is not resolved, and the group does not notice: the
member remains until its session expires, as if the connection had broken a moment later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar, cast

A = TypeVar("A")
B = TypeVar("B")


class Waiter(Generic[A]):
    """Accepts one response."""

    __slots__ = ("_answer", "_future", "_is_resolved")

    def __init__(self) -> None:
        self._answer: A | None = None
        self._is_resolved = False
        self._future: asyncio.Future[A] | None = None

    def resolve(self, answer: A) -> None:
        """Set the response."""
        assert not self._is_resolved, "each is resolved once"
        self._is_resolved = True
        self._answer = answer
        if self._future is not None and not self._future.done():
            self._future.set_result(answer)

    def answer(self) -> A | asyncio.Future[A]:
        """The response, or a future of it."""
        if self._is_resolved:
            return cast(A, self._answer)
        self._future = asyncio.get_running_loop().create_future()
        return self._future


def later(outcome: A | asyncio.Future[A], respond: Callable[[A], B]) -> B | asyncio.Future[B]:
    """The result of `respond` for an outcome, now or when it is available.

    Cancelling the future that this returns cancels the one that is waited for.
    """
    if not isinstance(outcome, asyncio.Future):
        return respond(outcome)
    response: asyncio.Future[B] = outcome.get_loop().create_future()

    def resolved(done: asyncio.Future[A]) -> None:
        if response.done():
            return
        if done.cancelled():
            response.cancel()
        elif (error := done.exception()) is not None:
            response.set_exception(error)
        else:
            response.set_result(respond(done.result()))

    def gone(done: asyncio.Future[B]) -> None:
        if done.cancelled():
            outcome.cancel()

    outcome.add_done_callback(resolved)
    response.add_done_callback(gone)
    return response
