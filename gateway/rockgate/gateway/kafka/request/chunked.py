"""Requests of many items, processed in slices so that other requests do not wait.

The first slice is processed at once: a request that ends with it is answered at once, which is
nearly every request. The rest of a large one follows over many turns of the loop, and its results
are encoded slice by slice too, because encoding ten thousand of them takes time as well.

No answer exceeds ANSWER_SIZE_MAX: a larger one is replaced by an error, and the client has to
request less. Only requests that have changed something are always answered.

Items take effect in the order given. Later requests on the same connection may take effect between
two slices; no client sends them before it has the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.now import Now
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.schema import Encoded, encode_part, join

SLICE_SECONDS = 0.002
"""How long items are checked before other requests get their turn; changes take extra time."""
SURE_STEPS = 8
SLICE_COST = 500
"""What the changes of one slice may cost, in units of about 0.2 microseconds."""
PARTS_MAX = 500

ANSWER_SIZE_MAX = 90 << 20
"""Maximum size of a response that is built in slices: librdkafka accepts at most 100 MB."""

Item = TypeVar("Item", contravariant=True)
Given = TypeVar("Given")
Part = TypeVar("Part")
Result = TypeVar("Result", covariant=True)
Response = TypeVar("Response")
Steps: TypeAlias = Generator[Awaitable[Any] | None, Any, Response | Awaitable[Response]]
"""Work that lets the event loop run wherever it yields, and returns its response.

It may yield an awaitable, and is sent the result.
"""


class Turn:
    """How long the loop has been occupied: checked between two pieces of work."""

    __slots__ = ("_now", "_until")

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self._now = now
        self._until = now() + SLICE_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether other requests should get their turn."""
        return self._now() >= self._until

    async def next(self) -> None:
        """Let other requests have their turn, and begin another slice."""
        await asyncio.sleep(0)
        self._until = self._now() + SLICE_SECONDS


def in_slices(work: Steps[Response]) -> Response | Awaitable[Response]:
    """Run the steps of a piece of work, as many as fit in a slice, then let other requests run.

    Work that ends with the first slice is answered at once.
    """
    turn = Turn()
    try:
        # A few steps never wait, however slow the machine is.
        for _ in range(SURE_STEPS):
            if (waits_for := next(work)) is not None:
                return _take_steps(work, turn, waits_for)
        while not turn.is_over:
            if (waits_for := next(work)) is not None:
                return _take_steps(work, turn, waits_for)
    except StopIteration as done:
        outcome: Response | Awaitable[Response] = done.value
        return outcome
    return _take_steps(work, turn, None)


def at_once(work: Generator[None, None, Part]) -> Part:
    """Run all steps of a piece of work: in a thread, or where they are known to be few."""
    try:
        while True:
            next(work)
    except StopIteration as done:
        outcome: Part = done.value
        return outcome


async def _take_steps(
    work: Steps[Response], turn: Turn, waits_for: Awaitable[Any] | None
) -> Response:
    try:
        while True:
            if waits_for is None:
                await turn.next()
                waits_for = next(work)
            else:
                try:
                    found = await waits_for
                except Exception as error:  # noqa: BLE001 # the work's own, to deal with or to raise
                    waits_for = work.throw(error)
                else:
                    waits_for = work.send(found)
            while waits_for is None and not turn.is_over:
                waits_for = next(work)
    except StopIteration as done:
        outcome: Response | Awaitable[Response] = done.value
    return await outcome if isinstance(outcome, Awaitable) else outcome


class Room:
    """How much a response may still grow."""

    __slots__ = ("_left",)

    def __init__(self, size_max: int = ANSWER_SIZE_MAX) -> None:
        self._left = size_max

    def take(self, size: int) -> None:
        """Count bytes; POLICY_VIOLATION if there are too many."""
        self._left -= size
        if self._left < 0:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"Response would exceed {ANSWER_SIZE_MAX:,} bytes; split the request.",
            )


class Growing(Generic[Part]):
    """Elements of a response, encoded as they are added."""

    __slots__ = ("_message", "_parts", "_room", "_struct", "_version", "_wholes")

    def __init__(self, message: type[Any], struct: type[Part], version: int, room: Room) -> None:
        self._message = message
        self._struct = struct
        self._version = version
        self._room = room
        self._parts: list[Encoded] = []
        # Parts that were joined: joining and freeing a hundred thousand at the end would take
        # longer than a slice.
        self._wholes: list[Encoded] = []

    def add(self, element: Part) -> None:
        """Add an element."""
        part = encode_part(self._message, element, self._version)
        self._room.take(len(part.data))
        self._parts.append(part)
        if len(self._parts) >= PARTS_MAX:
            self._wholes.append(join(self._struct, self._version, self._parts))
            self._parts.clear()

    def take(self) -> list[Any]:
        """All elements, encoded for their array; it is empty afterwards."""
        parts = [*self._wholes, *self._parts]
        self._wholes, self._parts = [], []
        return [join(self._struct, self._version, parts)] if parts else []


class Slice(Protocol[Item, Result]):
    """Some items of a request: checked one by one, then applied together."""

    def take(self, item: Item, /) -> int:
        """Check an item; return what applying it will cost."""
        ...

    def finish(self) -> Now[Sequence[Result | Encoded]]:
        """Apply the items; return all their results, in order: a list, if available at once."""
        ...


class Each(Generic[Given, Part]):
    """A slice whose items are answered one by one and change nothing."""

    def __init__(self, answer: Callable[[Given], Part | Encoded]) -> None:
        self._answer = answer
        self._results: list[Part | Encoded] = []

    def take(self, item: Given, /) -> int:
        """Answer an item; nothing is left to be done."""
        self._results.append(self._answer(item))
        return 0

    def finish(self) -> Sequence[Part | Encoded]:
        """Return the results."""
        return self._results


class EachNow(Generic[Given, Part]):
    """The same, for items some of which must be requested elsewhere: those are, all at once."""

    def __init__(self, part: type[Part], answer: Callable[[Given], Now[Part]]) -> None:
        self._parts = {part}
        self._answer = answer
        self._results: list[Any] = []

    def take(self, item: Given, /) -> int:
        """Answer an item, or begin to."""
        self._results.append(self._answer(item))
        return 0

    def finish(self) -> Now[Sequence[Part]]:
        """Return the results, at once if available."""
        results: list[Part] = self._results
        return results if {*map(type, results)} <= self._parts else self._wait()

    async def _wait(self) -> list[Part]:
        results = self._results
        places = [at for at, each in enumerate(results) if type(each) not in self._parts]
        found = await asyncio.gather(*(results[at] for at in places))
        for at, each in zip(places, found, strict=True):
            results[at] = each
        return results


class Slicing(Generic[Part]):
    """How one API slices its requests: the message of its results, and the type of one."""

    def __init__(
        self,
        message: type[Any],
        part: type[Part],
        *,
        is_changing: bool = False,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        """`is_changing` means that its items change something, so that it must be answered."""
        self._message = message
        self._part = part
        self._is_changing = is_changing
        self._now = now

    def work(
        self,
        items: Iterable[Item],
        begin: Callable[[], Slice[Item, Part]],
        respond: Callable[[list[Part | Encoded]], Response | Awaitable[Response]],
        version: int,
    ) -> Response | Awaitable[Response]:
        """Process all items, slice by slice, and respond with their results."""
        left = iter(items)
        results, is_last = self._next(left, begin())
        # Recognizing a list takes one instruction; an Awaitable, a walk over its class.
        if is_last and isinstance(results, list):
            return respond(results)
        return self._rest(left, begin, respond, version, results, is_last=is_last)

    async def _rest(
        self,
        left: Iterator[Item],
        begin: Callable[[], Slice[Item, Part]],
        respond: Callable[[list[Part | Encoded]], Response | Awaitable[Response]],
        version: int,
        results: Now[Sequence[Part | Encoded]],
        *,
        is_last: bool,
    ) -> Response:
        room = Room()
        found = await results if isinstance(results, Awaitable) else results
        done: list[Part | Encoded] = [self._encoded(found, version, room)]
        while not is_last:
            await asyncio.sleep(0)
            results, is_last = self._next(left, begin())
            found = await results if isinstance(results, Awaitable) else results
            done.append(self._encoded(found, version, room))
        response = respond(done)
        return await response if isinstance(response, Awaitable) else response

    def _next(
        self, left: Iterator[Item], slice_: Slice[Item, Part]
    ) -> tuple[Now[Sequence[Part | Encoded]], bool]:
        """Process the next slice; True if it was the last."""
        until = self._now() + SLICE_SECONDS
        cost = 0
        for item in left:
            cost += slice_.take(item)
            if cost >= SLICE_COST or self._now() >= until:
                return slice_.finish(), False
        return slice_.finish(), True

    def _encoded(self, results: Sequence[Part | Encoded], version: int, room: Room) -> Encoded:
        made = join(
            self._part,
            version,
            [
                each if isinstance(each, Encoded) else encode_part(self._message, each, version)
                for each in results
            ],
        )
        if not self._is_changing:
            room.take(len(made.data))
        return made
