"""What blocking faces have in common: opening and closing, and calls that wait on the loop.

A face has the calls of what is behind it, with the same parameters:

    class BlockingLitePullConsumer(Face):
        …
        poll = Waiting(LitePullConsumer.poll)       a coroutine function: run there, waited for
        position = OnLoop(…)                        a plain one: called there, for it is the loop's
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from rockgate.sdk.background import background

I = TypeVar("I")  # noqa: E741 # what is inside
I_co = TypeVar("I_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class Over(Protocol[I_co]):
    """A face, or a part of one."""

    @property
    def inner(self) -> I_co:
        """The asynchronous object; for the loop's thread only."""


class Waiting(Generic[I, P, R]):
    """A coroutine function of the asynchronous object, as a function that waits for its result."""

    def __init__(self, method: Callable[Concatenate[I, P], Coroutine[Any, Any, R]]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, face: None, kind: type) -> Self: ...

    @overload
    def __get__(self, face: Over[I], kind: type) -> Callable[P, R]: ...

    def __get__(self, face: Over[I] | None, kind: type) -> Self | Callable[P, R]:
        if face is None:
            return self
        inner = face.inner

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return background.run(self.method(inner, *args, **kwargs))

        return functools.update_wrapper(call, self.method)


class OnLoop(Generic[I, P, R]):
    """A plain function of the asynchronous object, called on its loop."""

    def __init__(self, method: Callable[Concatenate[I, P], R]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, face: None, kind: type) -> Self: ...

    @overload
    def __get__(self, face: Over[I], kind: type) -> Callable[P, R]: ...

    def __get__(self, face: Over[I] | None, kind: type) -> Self | Callable[P, R]:
        if face is None:
            return self
        inner = face.inner

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            async def called() -> R:
                return self.method(inner, *args, **kwargs)

            return background.run(called())

        return functools.update_wrapper(call, self.method)


class Part(Generic[I]):
    """A part of a face: it is opened and closed with the face."""

    def __init__(self, inner: I) -> None:
        self.inner = inner


class Opened(Protocol):
    """What a face opens, and closes."""

    async def open(self) -> object:
        """Begin."""

    async def close(self) -> None:
        """End."""


class Face:
    """What is opened and closed from outside of the loop that it runs on."""

    def __init__(self, inner: Opened) -> None:
        self._opened = inner
        self._is_open = False
        self._lock = threading.Lock()

    def open(self) -> Self:
        """Begin; it is opened once. Another thread that closes it meanwhile waits for that."""
        # A listener may be called before this returns, and have another thread close the consumer.
        with self._lock:
            background.acquire()
            try:
                background.run(self._open_inner())
            except BaseException:
                background.release()
                raise
            self._is_open = True
        return self

    def close(self) -> None:
        """Close the asynchronous object. The last to close ends the background loop."""
        self._close(self._opened.close)

    async def _open_inner(self) -> None:
        await self._opened.open()

    def _close(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        background.check_thread()
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
        try:
            background.run(close())
        finally:
            self._ended()
            background.release()

    def _asked(self, ask: Callable[[], R]) -> R:
        """The value of a property, read on the loop that it belongs to."""

        async def asked() -> R:
            return ask()

        return background.run(asked())

    def _ended(self) -> None:
        """It is closed."""

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
