"""Overload protection of the broker's listener, sans-IO: which requests are admitted, and when.

Each kind of request has a bound on how many are in flight and on how long one may wait before it is
started. Sends also wait while the store is stalled, and are rejected once that has lasted too long:
the store is busy then. The texts of refusals are those of RocketMQ's broker, because operators know
them; docs/internals/overload.md has the table. Time is a parameter.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

from rockgate.gateway.storage.config import OverloadConfig
from rockgate.protocol.remoting.codes import RequestCode

T = TypeVar("T")

REJECTED: Final = "REJECTREQUEST"
OVERLOADED: Final = "OVERLOAD"
TIMED_OUT: Final = "TIMEOUT_CLEAN_QUEUE"
DRAINED: Final = "PCBUSY_CLEAN_QUEUE"
STEP_COUNT: Final = 256
"""Waiting sends that are answered or started per step, so that none holds up the event loop."""

KINDS: Final[Mapping[str, frozenset[RequestCode]]] = {
    "send": frozenset(
        (
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
            RequestCode.CONSUMER_SEND_MSG_BACK,
        )
    ),
    "pull": frozenset(
        (
            RequestCode.PULL_MESSAGE,
            RequestCode.LITE_PULL_MESSAGE,
            RequestCode.POP_MESSAGE,
            RequestCode.PEEK_MESSAGE,
            RequestCode.NOTIFICATION,
            RequestCode.POLLING_INFO,
        )
    ),
    "heartbeat": frozenset((RequestCode.HEART_BEAT,)),
    "transaction": frozenset((RequestCode.END_TRANSACTION,)),
    "ack": frozenset(
        (
            RequestCode.ACK_MESSAGE,
            RequestCode.BATCH_ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        )
    ),
}
"""The kinds of requests; all others are `admin`."""
_NO_BOUND: Final = 1 << 62


class RequestKind:
    """One kind of request: its bounds, and how many are in flight."""

    __slots__ = (
        "in_flight",
        "in_flight_max",
        "is_full",
        "is_guarded",
        "is_held",
        "name",
        "refused",
        "wait_ms_max",
    )

    def __init__(self, name: str, in_flight_max: int, wait_ms_max: int) -> None:
        self.name = name
        self.in_flight_max = in_flight_max
        self.wait_ms_max = wait_ms_max
        self.in_flight = 0
        self.is_full = False
        self.is_held = False
        """Whether requests of this kind wait for the store."""
        self.is_guarded = False
        """Whether a request of this kind may not be started just so: one look for dispatch."""
        self.refused: Counter[str] = Counter()
        """How many were refused, by reason."""

    def enter(self) -> None:
        """Count a request that is not answered yet."""
        self.in_flight += 1
        if self.in_flight >= self.in_flight_max:
            self.is_full = self.is_guarded = True

    def leave(self, _: object = None) -> None:
        """Count a request as answered, or as given up; for callbacks of futures, too."""
        self.in_flight -= 1
        if self.is_full:
            self._look()

    def hold(self, is_held: bool) -> None:
        """Make requests of this kind wait for the store, or no longer."""
        self.is_held = is_held
        self.is_guarded = is_held or self.is_full

    def bound(self, in_flight_max: int, wait_ms_max: int) -> None:
        """Have other bounds from now on."""
        self.in_flight_max = in_flight_max
        self.wait_ms_max = wait_ms_max
        self._look()

    def _look(self) -> None:
        self.is_full = self.in_flight >= self.in_flight_max
        self.is_guarded = self.is_held or self.is_full


UNBOUNDED: Final = RequestKind("unbounded", _NO_BOUND, _NO_BOUND)
"""The kind of all requests where nothing is protected."""


class Overload(Generic[T]):
    """Admits requests, lets sends wait, and refuses."""

    def __init__(self, config: OverloadConfig) -> None:
        """Switched off, there are no bounds; requests are still counted."""
        self._busy_ms_min = config.busy_ms_min
        self.kinds = {name: RequestKind(name, _NO_BOUND, _NO_BOUND) for name in (*KINDS, "admin")}
        self.configure(config)
        self._by_code = {code: self.kinds[name] for name, codes in KINDS.items() for code in codes}
        self._sends = self.kinds["send"]
        self._stalled_at_ms: int | None = None
        self._waiting: deque[tuple[T, int]] = deque()

    def configure(self, config: OverloadConfig) -> None:
        """Have other bounds from now on, which waiting sends are subject to, too."""
        self._busy_ms_min = config.busy_ms_min
        if not config.enabled:
            return
        for name, kind in self.kinds.items():
            kind.bound(
                getattr(config, f"{name}_in_flight_max"), getattr(config, f"{name}_wait_ms_max")
            )

    def kind_of(self, code: RequestCode) -> RequestKind:
        """The kind of a request code."""
        return self._by_code.get(code, self.kinds["admin"])

    @property
    def waiting_count(self) -> int:
        """How many sends wait for the store."""
        return len(self._waiting)

    def oldest_wait_ms(self, now_ms: int) -> int:
        """Return for how long the first waiting send has waited; 0 if none waits."""
        return now_ms - self._waiting[0][1] if self._waiting else 0

    @property
    def is_releasing(self) -> bool:
        """Whether the store takes sends again, and some still wait for their turn."""
        return self._stalled_at_ms is None and bool(self._waiting)

    @property
    def is_at_rest(self) -> bool:
        """Whether no send waits, and none would."""
        return self._stalled_at_ms is None and not self._waiting

    def stalled(self, is_stalled: bool, now_ms: int) -> None:
        """The store is stalled, or has resumed."""
        self._stalled_at_ms = now_ms if is_stalled else None
        self._sends.hold(not self.is_at_rest)

    def is_busy(self, now_ms: int) -> bool:
        """Whether appends have waited long enough for sends to be rejected."""
        since_ms = self._stalled_at_ms
        return since_ms is not None and now_ms - since_ms >= self._busy_ms_min

    def refusal(self, kind: RequestKind, now_ms: int) -> str | None:
        """Why a request that has just arrived is refused; None if it is started, or has to wait."""
        if kind.is_held and self.is_busy(now_ms):
            return _refuse(kind, REJECTED)
        if kind.is_full:
            return _refuse(kind, OVERLOADED)
        return None

    def overdue(self, kind: RequestKind, age_ms: int, behind_count: int) -> str | None:
        """Why a request is refused that was received `age_ms` ago and is to be started now."""
        if age_ms < kind.wait_ms_max:
            return None
        return _refuse(kind, TIMED_OUT, age_ms, behind_count)

    def wait(self, send: T, now_ms: int) -> None:
        """Let a send wait for the store."""
        self._waiting.append((send, now_ms))

    def step(self, now_ms: int) -> Iterator[tuple[T, str | None]]:
        """Take waiting sends whose time has come: with the reason of a refusal, or to be started.

        Each must be processed as it is returned: those that arrive meanwhile wait behind them.
        """
        kind, waiting, is_busy = self._sends, self._waiting, self.is_busy(now_ms)
        for _ in range(min(STEP_COUNT, len(waiting))):
            send, since_ms = waiting[0]
            age_ms, behind_count = now_ms - since_ms, len(waiting) - 1
            if is_busy:
                refusal: str | None = _refuse(kind, DRAINED, age_ms, behind_count)
            else:
                refusal = self.overdue(kind, age_ms, behind_count)
                if refusal is None and self._stalled_at_ms is not None:
                    break
            waiting.popleft()
            yield send, refusal
        kind.hold(not self.is_at_rest)


def _refuse(kind: RequestKind, reason: str, age_ms: int = 0, behind_count: int = 0) -> str:
    """Count a refusal, and return its text."""
    kind.refused[reason] += 1
    if reason in (REJECTED, OVERLOADED):
        return f"[{reason}]system busy, start flow control for a while"
    return (
        f"[{reason}]broker busy, start flow control for a while, "
        f"period in queue: {age_ms}ms, size of queue: {behind_count}"
    )
