"""Terms of leadership, computed from what brokers list. No I/O: time and views are given.

docs/internals/rocketmq-cluster.md has the table. A partition's leader is chosen among the gateways
that its own broker lists: all who ask that broker agree, and who has lost it leads nothing of it.

Three rules keep two gateways from serving the same partition:

    after a change        what was lost is served for LINGER_S, what was gained begins after WAIT_S
    without the broker    a view that was not confirmed for FENCE_S is void, and so is one whose
                          connection was lost; others wait longer before they call us silent
    after a stop          if this process did not run for JUMP_S, all views are void; after a
                          shorter one what was lost is served for as much less than LINGER_S, for
                          word of the change may have waited as long
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.members.gateways import Gateway
from rockgate.gateway.rocketmq.members.leadership import (
    NEVER,
    NOT_SERVED,
    LeadershipWatcher,
    PartitionLease,
)
from rockgate.gateway.rocketmq.members.rendezvous import Rendezvous

LINGER_S: Final = 1.0
"""How long what was lost is still served."""
WAIT_S: Final = 1.25
"""How long what was gained is refused: longer, because views do not change in the same moment."""
FENCE_S: Final = 8.0
"""How old the last heartbeat that a broker took may be."""
JUMP_S: Final = 1.0
TICK_S: Final = 0.1
SLACK_S: Final = 0.005
"""Timers may come a little early."""
TERMS_MAX: Final = 200_000
KNOWN_MAX: Final = 2_000

log = logging.getLogger(__name__)


class _View:
    """What one broker lists."""

    __slots__ = ("changed_at", "confirmed_at", "gateways", "placed")

    def __init__(self, gateways: tuple[Gateway, ...], changed_at: float) -> None:
        self.gateways = gateways
        self.placed = Rendezvous([each.node_id for each in gateways])
        self.changed_at = changed_at
        self.confirmed_at = changed_at


class _Term:
    """One queue: it is served from `begins_at` up to `ends_at`."""

    __slots__ = ("begins_at", "ends_at", "is_announced", "lease")

    def __init__(self) -> None:
        self.begins_at = NEVER
        self.ends_at = NEVER
        self.lease = NOT_SERVED
        self.is_announced = False
        """Whether watchers know that it has begun."""

    @property
    def is_led(self) -> bool:
        return self.begins_at < NEVER and self.ends_at == NEVER

    def begin(self, at: float) -> None:
        self.begins_at, self.ends_at = at, NEVER
        self.lease = PartitionLease(is_served=True, since=at)

    def clear(self) -> None:
        self.begins_at = self.ends_at = NEVER
        self.lease = NOT_SERVED


class LeaderTerms:
    """All terms of this gateway. `on_stop` is called when it finds that it did not run."""

    def __init__(
        self, node_id: int, clock: Clock, *, on_stop: Callable[[], None] = lambda: None
    ) -> None:
        self._node_id = node_id
        self._clock = clock
        self._on_stop = on_stop
        self._views: dict[str, _View] = {}
        self._known: dict[Gateway, None] = {}
        """Every gateway that any broker has listed or that is written; the oldest is forgotten."""
        self._terms: dict[str, dict[QueueName, _Term]] = {}
        self._count = 0
        self._watchers: list[LeadershipWatcher] = []
        self._ran_at = clock.time()
        self._stops: deque[tuple[float, float]] = deque()
        """Short stops of the last LINGER_S: when each ended, and how long it was."""
        self._is_closed = False
        self.version = 0
        """Grows with every change of a view."""
        self._tick()

    # Asking

    def lease(self, queue: QueueName) -> PartitionLease:
        """The lease of a queue now."""
        now = self._clock.time()
        view = self._valid(queue.broker, now)
        if view is None:
            return NOT_SERVED
        terms = self._terms.setdefault(queue.broker, {})
        term = terms.get(queue)
        if term is None:
            term = self._new(terms, queue, view, now)
        if term.begins_at <= now < term.ends_at:
            return term.lease
        if term.is_led:
            return PartitionLease(is_served=False, since=term.begins_at)
        return NOT_SERVED

    def watch(self, watcher: LeadershipWatcher) -> None:
        """Tell a watcher of every term that begins or ends."""
        self._watchers.append(watcher)

    def is_elsewhere(self, queue: QueueName) -> bool:
        """Whether another gateway is known to lead a queue, and it is no longer served here."""
        return self.leader(queue) not in (None, self._node_id) and not self.lease(queue).is_served

    def leader(self, queue: QueueName) -> int | None:
        """The node id of the gateway that leads a queue; None if that is not known."""
        view = self._valid(queue.broker, self._clock.time())
        return None if view is None else view.placed.leader(queue)

    def gateways(self, broker: str) -> tuple[Gateway, ...]:
        """The gateways that a broker lists; none if it is lost."""
        view = self._valid(broker, self._clock.time())
        return () if view is None else view.gateways

    def all_gateways(self) -> list[Gateway]:
        """The gateways that any broker lists, sorted."""
        return sorted({each for broker in list(self._views) for each in self.gateways(broker)})

    def gone(self, listed: Collection[Gateway]) -> list[Gateway]:
        """The gateways that were there and that are not among those that a broker lists."""
        return [each for each in self._known if each not in listed]

    @property
    def known_count(self) -> int:
        """How many gateways were ever listed or written down."""
        return len(self._known)

    # Views

    def know(self, gateways: Iterable[Gateway]) -> None:
        """These are or were there: what was listed before them stays the newest."""
        for each in gateways:
            if each not in self._known and len(self._known) < KNOWN_MAX:
                self._known[each] = None

    def seen(self, broker: str, gateways: Iterable[Gateway], confirmed_at: float) -> None:
        """A broker lists these; it took a heartbeat that was sent at `confirmed_at`."""
        found = tuple(gateways)
        now = self._clock.time()
        known = self._valid(broker, now)
        if self._is_closed or now - confirmed_at > FENCE_S:
            return
        if all(each.node_id != self._node_id for each in found):
            self.lost(broker, "it does not list this gateway")
            return
        if known is not None and known.gateways == found:
            known.confirmed_at = max(known.confirmed_at, confirmed_at)
            return
        self._remember(found)
        names = " ".join(each.client_id for each in found)
        log.info("broker %s lists gateways %s", broker, names)
        view = self._views[broker] = _View(found, now)
        view.confirmed_at = confirmed_at
        self.version += 1
        linger_s = max(0.0, LINGER_S - self._stopped_s(now))
        for queue, term in list(self._terms.get(broker, {}).items()):
            self._turn(queue, term, view, now, linger_s)
        for after_s in (linger_s, WAIT_S):
            self._clock.call_later(after_s + SLACK_S, lambda: self._settle(broker))

    def lost(self, broker: str, reason: str) -> None:
        """The broker is lost: all terms at it end at once."""
        view = self._views.pop(broker, None)
        if view is None:
            return
        log.warning("leading nothing of broker %s: %s", broker, reason)
        self.version += 1
        for queue, term in self._terms.pop(broker, {}).items():
            self._count -= 1
            self._end(queue, term)

    def close(self) -> None:
        """Lead nothing from now on."""
        self._is_closed = True
        for broker in list(self._views):
            self.lost(broker, "the gateway stops")

    # Private

    def _remember(self, gateways: Iterable[Gateway]) -> None:
        for each in gateways:
            self._known.pop(each, None)
            self._known[each] = None
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def _valid(self, broker: str, now: float) -> _View | None:
        """The view of a broker, if it holds."""
        self._check_ran(now)
        view = self._views.get(broker)
        if view is not None and now - view.confirmed_at > FENCE_S:
            self.lost(broker, f"it has not answered for {now - view.confirmed_at:.1f} s")
            return None
        return view

    def _check_ran(self, now: float) -> None:
        stopped_s = now - self._ran_at
        self._ran_at = now
        if stopped_s > JUMP_S + TICK_S:
            log.warning("this process did not run for %.1f s", stopped_s)
            for broker in list(self._views):
                self.lost(broker, "this process was stopped")
            self._on_stop()
        elif stopped_s > TICK_S + SLACK_S:
            # Up to a tick of it nothing was due.
            self._stops.append((now, min(stopped_s, 2 * (stopped_s - TICK_S))))

    def _stopped_s(self, now: float) -> float:
        """How long this process did not run lately: word of a change may have waited."""
        while self._stops and now - self._stops[0][0] > LINGER_S:
            self._stops.popleft()
        return sum(seconds for _, seconds in self._stops)

    def _tick(self) -> None:
        now = self._clock.time()
        self._check_ran(now)
        for broker in list(self._views):
            self._valid(broker, now)
        if not self._is_closed:
            self._clock.call_later(TICK_S, self._tick)

    def _new(
        self, terms: dict[QueueName, _Term], queue: QueueName, view: _View, now: float
    ) -> _Term:
        if self._count >= TERMS_MAX:
            # What is forgotten begins a new term when it is asked for again.
            oldest = next(iter(terms), None)
            if oldest is not None:
                self._count -= 1
                self._end(oldest, terms.pop(oldest))
        term = terms[queue] = _Term()
        self._count += 1
        if view.placed.leader(queue) == self._node_id:
            term.begin(view.changed_at + WAIT_S)
            term.is_announced = term.begins_at <= now
        return term

    def _turn(
        self, queue: QueueName, term: _Term, view: _View, now: float, linger_s: float
    ) -> None:
        """Begin or end the term of a queue after a change of view."""
        if view.placed.leader(queue) == self._node_id:
            if not term.is_led:
                self._end(queue, term)
                term.begin(now + WAIT_S)
        elif term.is_led:
            if term.begins_at <= now:
                term.ends_at = now + linger_s
            else:
                term.clear()

    def _settle(self, broker: str) -> None:
        """Tell of what has begun and ended by now."""
        now = self._clock.time()
        if self._valid(broker, now) is None:
            return
        for queue, term in list(self._terms.get(broker, {}).items()):
            if term.ends_at <= now:
                self._end(queue, term)
            elif term.begins_at <= now and not term.is_announced:
                term.is_announced = True
                for watcher in self._watchers:
                    watcher.gained(queue)

    def _end(self, queue: QueueName, term: _Term) -> None:
        was_served = term.begins_at < NEVER
        term.clear()
        term.is_announced = False
        if was_served:
            for watcher in self._watchers:
                watcher.lost(queue)
