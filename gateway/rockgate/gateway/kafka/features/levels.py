"""The levels of features: those of a new cluster, and what was changed, which is in the log.

docs/internals/state.md has the shape of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rockgate.gateway.kafka.features.table import FEATURES
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.store.api.folds import Fold, Journal, KeyedFold
from rockgate.store.errors import StoreError

TOPIC: Final = b"rmq_sys_rockgate_features"
EPOCH: Final = ""
"""The key of how often levels were changed."""


class FeatureLevels:
    """The levels, and the only way to change them."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[str, int] = KeyedFold(
            journal, name="features", topic=TOPIC, key=str, value=int
        )

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    @property
    def epoch(self) -> int:
        """How often levels were changed."""
        return self._fold.find(EPOCH) or 0

    def level(self, name: str) -> int:
        """The level of a feature. A later version may know fewer, or have other bounds."""
        feature, level = FEATURES[name], self._fold.find(name)
        if level is None or not feature.low <= level <= feature.high:
            return feature.initial
        return level

    def put(self, levels: Mapping[str, int]) -> None:
        """Change levels, all of them or none; those that are so already are left alone.

        RequestError if they cannot be written.
        """
        changes = {name: level for name, level in levels.items() if level != self.level(name)}
        if not changes:
            return
        try:
            self._fold.put({**changes, EPOCH: self.epoch + 1})
        except StoreError as error:
            raise RequestError(*explain(error)) from error
