"""Expires offsets of groups that are no longer used, and groups of which nothing is left.

    the group                               its offsets' time begins
    has no members and never had            when each was committed
    no longer has members                   when the last one left, or later when committed
    has members that are consumers          for topics that none of them subscribes to,
                                            when each was committed; for the others never
    has other members                       never: the server cannot tell what they read

An offset that was committed with a retention time (v2-4) expires by that alone. None expires while
a transaction is about to commit another one in its place. All progress is scanned periodically,
page by page, with other work in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.fold import SavedGroups
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.subscription import subscribed
from rockgate.gateway.kafka.request import names
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.store.api.problems import DeferralLog
from rockgate.store.api.progress import Committed, Key, Progress
from rockgate.store.api.topics import TopicLookup
from rockgate.store.errors import StoreError

PAGE_COUNT = 500
"""Offsets, or groups, scanned before other requests run."""
log = logging.getLogger(__name__)

Begins = Callable[[Key, Committed], int | None]
"""When the retention of an offset begins; None if it does not expire."""


class Expiry:
    """Scans all offsets repeatedly. Owned by the app."""

    def __init__(
        self,
        *,
        config: GroupsConfig,
        groups: Groups,
        saved: SavedGroups,
        progress: Progress,
        topics: TopicLookup,
        now_ms: Callable[[], int],
        is_pending: Callable[[str, bytes, int], bool] = lambda group, topic_id, queue_id: False,
    ) -> None:
        self._config = config
        self._groups = groups
        self._saved = saved
        self._progress = progress
        self._topics = topics
        self._now_ms = now_ms
        self._is_pending = is_pending
        self._offsets_at: int | None = 0
        self._groups_at: int | None = 0
        self._timer: Timer | None = None
        self._expiries = DeferralLog(log, "offset expiration")
        self.removed_count = 0

    def start(self, clock: Clock) -> None:
        """Scan periodically."""

        def step() -> None:
            try:
                is_done = not self.step()
                self._expiries.end()
            except StoreError as error:
                self._expiries.report(error)
                is_done = True
            except Exception:  # a supervisor: tried again at the next time
                log.exception("offset expiration suspended")
                is_done = True
            seconds = self._config.offsets_check_ms / 1000 if is_done else 0
            self._timer = clock.call_later(seconds, step)

        self._timer = clock.call_later(self._config.offsets_check_ms / 1000, step)

    def stop(self) -> None:
        """Stop scanning."""
        if self._timer is not None:
            self._timer.cancel()

    def step(self) -> bool:
        """Scan one page; return whether there are more in this round."""
        if self._offsets_at is not None:
            # Advance only when that is done: a page that fails is scanned again.
            next_at, page = self._progress.page(self._offsets_at, PAGE_COUNT)
            self._expire(page)
            self._offsets_at = next_at
            return True
        if self._groups_at is not None:
            next_at, found = self._saved.page(self._groups_at, PAGE_COUNT)
            self._groups.forget([name for name in found if self._is_nothing(name)])
            self._groups_at = next_at
            if self._groups_at is not None:
                return True
        self._offsets_at = self._groups_at = 0
        return False

    def _expire(self, page: list[tuple[Key, Committed]]) -> None:
        now_ms = self._now_ms()
        begins: dict[str, Begins] = {}
        expired = []
        for key, committed in page:
            begin = begins.get(key.group)
            if begin is None:
                begin = begins[key.group] = self._begins(key.group)
            begin_ms = begin(key, committed)
            if begin_ms is None:
                continue
            until_ms = committed.expire_ms
            if until_ms < 0:
                until_ms = begin_ms + self._config.offsets_retention_ms
            if until_ms <= now_ms and not self._is_pending(*key):
                expired.append(key)
        if expired:
            self._progress.remove(expired)
            self.removed_count += len(expired)
            log.info("offsets expired count=%d", len(expired))

    def _begins(self, group: str) -> Begins:
        view = self._groups.describe(group)
        if view is None:
            return lambda key, committed: committed.commit_ms
        if view.state is GroupState.EMPTY:
            record = self._saved.find(group)
            left_ms = record.store_ms if record is not None else 0
            return lambda key, committed: max(left_ms, committed.commit_ms)
        read = subscribed(view)
        if read is None or view.state is not GroupState.STABLE:
            return lambda key, committed: None

        def begin(key: Key, committed: Committed) -> int | None:
            topic = self._topics.find_id(key.topic_id)
            is_read = topic is not None and names.to_kafka(topic.name) in read
            return None if is_read else committed.commit_ms

        return begin

    def _is_nothing(self, group: str) -> bool:
        """Whether a group has neither members nor offsets."""
        if self._groups.is_active(group):
            return False
        return next(self._progress.fetch_group(group), None) is None
