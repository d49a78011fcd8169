"""Which APIs the level of a feature switches off, as Kafka 4.3.1 answered them at level 0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.gateway.kafka.world import call
from tests.store.journals import MemoryJournal

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.features.levels import FeatureLevels
from rockgate.gateway.kafka.features.switched import switched
from rockgate.gateway.kafka.features.table import FEATURES, SWITCHES, InitialLevels
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

NO_SERVICES: Any = None
OFF = {
    "group.version": {68, 69},
    "share.version": {76, 77, 78, 79, 90, 91, 92},
    "streams.version": {88, 89},
}


class Echo:
    """Answers with what it was asked."""

    def handle(self, request: Any, call: Any) -> Any:
        return "handled"

    def refuse(self, request: Any, code: ErrorCode) -> Any:
        return code


def answers(levels: FeatureLevels) -> dict[int, Any]:
    """What each API of the table answers."""
    found = {}
    for row in HANDLERS:
        handler = switched(replace(row, make=lambda _: Echo()), levels).make(NO_SERVICES)
        found[int(row.key)] = handler.handle(None, call(0))
    return found


@pytest.mark.row("FEAT-2")
@pytest.mark.parametrize("name", OFF)
def test_at_level_0_the_apis_of_a_feature_refuse_and_no_others(name: str) -> None:
    levels = FeatureLevels(journal := MemoryJournal())
    journal.attach(levels.fold)
    everything = dict.fromkeys((int(row.key) for row in HANDLERS), "handled")
    assert answers(levels) == everything
    levels.put({name: 0})
    off = dict.fromkeys(OFF[name], ErrorCode.UNSUPPORTED_VERSION)
    assert answers(levels) == everything | off
    levels.put({name: FEATURES[name].high})
    assert answers(levels) == everything


def test_only_groups_have_a_switch() -> None:
    assert {key: name for name, keys in OFF.items() for key in map(ApiKey, keys)} == dict(SWITCHES)


def test_a_new_cluster_has_the_initial_levels() -> None:
    levels = InitialLevels()
    assert levels.epoch == 0
    assert [levels.level(name) for name in FEATURES] == [each.initial for each in FEATURES.values()]
