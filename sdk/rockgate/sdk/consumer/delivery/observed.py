"""Notifies hooks and statistics of the outcome of messages, for every way of consuming."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rockgate.sdk import hooks as hook_calls
from rockgate.sdk.consumer.delivery.redelivery import Retry
from rockgate.sdk.hooks import ConsumeHook, ConsumeKind, Consuming
from rockgate.sdk.observe.statistics import Statistics
from rockgate.sdk.received import Received


class Observed:
    """How one consumer reports the calls of its listeners."""

    def __init__(
        self,
        group: str,
        hooks: Sequence[ConsumeHook] = (),
        statistics: Statistics | None = None,
        *,
        timeout_s: float = 900.0,
    ) -> None:
        self.group = group
        self.hooks = hooks
        self.statistics = statistics or Statistics()
        self.timeout_s = timeout_s

    def call(self, messages: Sequence[Received], *, is_iterated: bool = False) -> Call:
        """A listener is about to be called; to be used as a block around it."""
        return Call(self, messages, is_iterated=is_iterated)


class Call:
    """One call of a listener, or one message that was iterated over."""

    __slots__ = ("_began_s", "_consuming", "_messages", "_observed", "done")

    def __init__(
        self, observed: Observed, messages: Sequence[Received], *, is_iterated: bool
    ) -> None:
        self._observed = observed
        self._messages = messages
        self.done = 0
        """How many messages are done; the rest is to be redelivered."""
        self._began_s = 0.0
        self._consuming: Consuming | None = None
        if observed.hooks:
            self._consuming = Consuming(observed.group, messages, is_iterated=is_iterated)

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        if self._consuming is not None:
            hook_calls.begin_consume(self._observed.hooks, self._consuming)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """The call has ended: normally, or with this error."""
        observed, messages = self._observed, self._messages
        now_s = time.monotonic()
        took_s = now_s - self._began_s
        done = self.done
        if error is not None:
            done = min(error.done, len(messages)) if isinstance(error, Retry) else 0
        observed.statistics.consumed(
            messages[0].topic, now_s, took_s=took_s, ok=done, failed=len(messages) - done
        )
        consuming = self._consuming
        if consuming is None:
            return
        consuming.took_s = took_s
        consuming.done_count = done
        consuming.error = error
        if error is not None and not isinstance(error, Retry):
            consuming.kind = ConsumeKind.EXCEPTION
        elif took_s >= observed.timeout_s:
            consuming.kind = ConsumeKind.TIME_OUT
        elif done < len(messages):
            consuming.kind = ConsumeKind.FAILED
        else:
            consuming.kind = ConsumeKind.SUCCESS
        hook_calls.end_consume(observed.hooks, consuming)
