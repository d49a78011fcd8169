"""The labels of a set, of which there is a limited number.

Names come from clients, so a label must not stay forever, nor may invented names evict those that
are in use. When a table is full, a new label replaces the one that has not changed for longest,
unless that changed since the last snapshot; then it is counted without a name, until there is room.
Labels that have not changed for a day are dropped: all their windows are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

from rockgate.gateway.remoting.statistics.series import STEP_MS, Series, Span

Key = TypeVar("Key", bound=Hashable)
Kind = TypeVar("Kind", bound=Series)
IDLE_MS_MAX: Final = 25 * STEP_MS[Span.DAY]


class SeriesTable(Generic[Key, Kind]):
    """Series by label. `rows` is in order of their last change, as of the last snapshot."""

    def __init__(
        self, kind: Callable[[int], Kind], labels_max: int, now_ms: Callable[[], int]
    ) -> None:
        self._kind = kind
        self._labels_max = labels_max
        self._now_ms = now_ms
        self.rows: dict[Key, Kind] = {}
        self.nameless = kind(now_ms())
        """Counts what has no label of its own."""
        self.dropped_count = 0
        """Labels that were idle, and made room or were dropped by age."""
        self.refused_count = 0
        """How often there was no room for a label."""

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, key: Key) -> Kind:
        """Return the series of a label, which is made if there is room."""
        series = self.rows.get(key)
        return self._make(key) if series is None else series

    def _make(self, key: Key) -> Kind:
        now_ms = self._now_ms()
        if len(self.rows) >= self._labels_max and not self._evict(now_ms):
            self.refused_count += 1
            return self.nameless
        series = self.rows[key] = self._kind(now_ms)
        return series

    def _evict(self, now_ms: int) -> bool:
        oldest = next(iter(self.rows), None)
        if oldest is None or not self.rows[oldest].is_idle(now_ms):
            return False
        del self.rows[oldest]
        self.dropped_count += 1
        return True

    def drop(self, key: Key) -> None:
        """Forget a label."""
        self.rows.pop(key, None)

    def drop_if(self, is_gone: Callable[[Key], bool]) -> None:
        """Forget every label that is gone."""
        for key in [each for each in self.rows if is_gone(each)]:
            del self.rows[key]

    def sample(self, span: Span, now_ms: int) -> Iterator[None]:
        """Take a snapshot of every series, with a pause after each."""
        for key, series in list(self.rows.items()):
            if self.rows.get(key) is not series:
                continue
            was_ms = series.changed_ms
            series.sample(span, now_ms)
            if series.changed_ms != was_ms:
                # Those that change move behind those that do not.
                del self.rows[key]
                self.rows[key] = series
            elif now_ms - series.changed_ms > IDLE_MS_MAX:
                del self.rows[key]
                self.dropped_count += 1
            yield
