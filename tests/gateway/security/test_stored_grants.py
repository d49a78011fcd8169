from __future__ import annotations

import pytest
from tests.store.journals import MemoryJournal

from rockgate.gateway.security import stored_grants
from rockgate.gateway.security.errors import TooManyRecords
from rockgate.gateway.security.grants import (
    AclOperation,
    AclResourceType,
    Grant,
    PatternType,
    Permission,
)
from rockgate.gateway.security.stored_grants import StoredGrants


def make() -> tuple[StoredGrants, MemoryJournal]:
    journal = MemoryJournal()
    grants = StoredGrants(journal)
    journal.attach(grants.fold)
    return grants, journal


def numbered(n: int) -> Grant:
    return Grant(
        AclResourceType.TOPIC,
        f"topic-{n}",
        PatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        Permission.ALLOW,
    )


def test_grants_survive_a_snapshot_with_their_index() -> None:
    grants, journal = make()
    grants.add(map(numbered, range(20)))
    grants.remove([numbered(3)])
    again, _ = make()
    again.fold.restore(grants.fold.snapshot())
    assert set(again) == set(grants) == {numbered(n) for n in range(20) if n != 3}
    for entry in journal.changes:
        again.fold.apply(entry)
    assert set(again) == set(grants)
    found = again.index.of_resource(AclResourceType.TOPIC, "topic-7", PatternType.PREFIXED)
    assert found == [numbered(7)]
    assert again.index.of_resource(AclResourceType.TOPIC, "topic-3", PatternType.PREFIXED) == []


def test_what_exists_is_not_added_again_and_what_does_not_is_not_removed() -> None:
    grants, journal = make()
    grants.add([numbered(1)])
    before = len(journal.changes)
    grants.add([numbered(1)])
    grants.remove([numbered(2)])
    assert len(journal.changes) == before


def test_the_number_of_grants_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_grants, "GRANTS_MAX", 3)
    grants, _ = make()
    grants.add(map(numbered, range(3)))
    with pytest.raises(TooManyRecords, match="maximum of 3 grants"):
        grants.add([numbered(3)])
    grants.add([numbered(1)])
    assert len(grants) == 3
