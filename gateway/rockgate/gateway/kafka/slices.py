"""Requests of many items, worked on a little at a time so that nobody else waits.

The first slice is worked on at once: a request that ends with it is answered at once, which is
nearly every request. The rest of a large one follows over many turns of the loop, and its results
are encoded slice by slice too, because writing ten thousand of them is work as well.

Items take effect in the order given. What came behind the request on the same connection may take
effect between two slices; no client sends it before it has the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from rockgate.protocol.kafka.schema import Encoded, encode_part, join

SLICE_SECONDS = 0.002
"""How long items are looked at before others get their turn; changes come on top of it."""
SLICE_COST = 500
"""What the changes of one slice may cost, in microseconds or so times five."""

Item = TypeVar("Item", contravariant=True)
Given = TypeVar("Given")
Part = TypeVar("Part")
Result = TypeVar("Result", covariant=True)
Response = TypeVar("Response")


class Slice(Protocol[Item, Result]):
    """Some items of a request: looked at one by one, then acted on together."""

    def take(self, item: Item, /) -> int:
        """Look at an item; return what acting on it will cost."""
        ...

    def finish(self) -> Sequence[Result | Encoded]:
        """Act; return the results of all items taken, in their order."""
        ...


class Each(Generic[Given, Part]):
    """A slice whose items are answered one by one and change nothing."""

    def __init__(self, answer: Callable[[Given], Part | Encoded]) -> None:
        self._answer = answer
        self._results: list[Part | Encoded] = []

    def take(self, item: Given, /) -> int:
        """Answer it now: nothing is left to be done."""
        self._results.append(self._answer(item))
        return 0

    def finish(self) -> Sequence[Part | Encoded]:
        """Return the answers."""
        return self._results


class Slicing(Generic[Part]):
    """How one API cuts its requests: the message its results are part of, and what one is."""

    def __init__(
        self, message: type[Any], part: type[Part], *, now: Callable[[], float] = perf_counter
    ) -> None:
        self._message = message
        self._part = part
        self._now = now

    def work(
        self,
        items: Iterable[Item],
        begin: Callable[[], Slice[Item, Part]],
        respond: Callable[[list[Part | Encoded]], Response | Awaitable[Response]],
        version: int,
    ) -> Response | Awaitable[Response]:
        """Take all items, slice by slice, and respond with their results."""
        left = iter(items)
        results, is_last = self._next(left, begin())
        if is_last:
            return respond(list(results))
        return self._rest(left, begin, respond, version, results)

    async def _rest(
        self,
        left: Iterator[Item],
        begin: Callable[[], Slice[Item, Part]],
        respond: Callable[[list[Part | Encoded]], Response | Awaitable[Response]],
        version: int,
        results: Sequence[Part | Encoded],
    ) -> Response:
        done: list[Part | Encoded] = [self._encoded(results, version)]
        is_last = False
        while not is_last:
            await asyncio.sleep(0)
            results, is_last = self._next(left, begin())
            done.append(self._encoded(results, version))
        response = respond(done)
        return await response if isinstance(response, Awaitable) else response

    def _next(
        self, left: Iterator[Item], slice_: Slice[Item, Part]
    ) -> tuple[Sequence[Part | Encoded], bool]:
        """Work on the next slice; say whether it was the last."""
        until = self._now() + SLICE_SECONDS
        cost = 0
        for item in left:
            cost += slice_.take(item)
            if cost >= SLICE_COST or self._now() >= until:
                return slice_.finish(), False
        return slice_.finish(), True

    def _encoded(self, results: Sequence[Part | Encoded], version: int) -> Encoded:
        return join(
            self._part,
            version,
            [
                each if isinstance(each, Encoded) else encode_part(self._message, each, version)
                for each in results
            ],
        )
