from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest
from tests.store.journals import MemoryJournal

from rockgate.gateway.security import users as users_module
from rockgate.gateway.security.credentials.logins import scram_of
from rockgate.gateway.security.errors import InvalidUser, TooManyRecords
from rockgate.gateway.security.users import StoredUsers, User, UserStatus, UserType
from rockgate.protocol.sasl.scram import ScramMechanism

SHA_256 = ScramMechanism.SHA_256
KEYS = scram_of("alice-secret", 4_096)


def make() -> tuple[StoredUsers, MemoryJournal]:
    journal = MemoryJournal()
    users = StoredUsers(journal)
    journal.attach(users.fold)
    return users, journal


def test_a_user_survives_a_snapshot_and_a_replay() -> None:
    users, journal = make()
    alice = User(type=UserType.SUPER, scram=KEYS, sealed=b"sealed")
    users.put({"alice": alice, "bob": User(scram=KEYS)})
    users.put({"bob": None})
    again, _ = make()
    again.fold.restore(users.fold.snapshot())
    for entry in journal.changes:
        again.fold.apply(entry)
    assert again.find("alice") == alice
    assert again.find("bob") is None
    assert again.credential("alice", SHA_256) == KEYS["SCRAM-SHA-256"]
    assert list(again.names()) == ["alice"]


def test_a_disabled_user_has_no_credential_to_log_in_with() -> None:
    users, _ = make()
    users.put({"alice": User(scram=KEYS, status=UserStatus.DISABLED)})
    assert users.credential("alice", SHA_256) is None
    assert not users.is_enabled("alice")
    assert users.find("alice") is not None


def test_listeners_are_told_which_users_have_changed() -> None:
    users, _ = make()
    users.put({"before": User(scram=KEYS)})
    told: list[AbstractSet[str]] = []
    users.on_changed.append(told.append)
    users.put({"alice": User(scram=KEYS), "bob": User(scram=KEYS)})
    users.put({"alice": None, "nobody": None})
    assert told == [{"alice", "bob"}, {"alice"}]


@pytest.mark.parametrize("name", ["", "ANONYMOUS", "*", "x" * 256])
def test_some_names_are_nobody_s(name: str) -> None:
    users, journal = make()
    with pytest.raises(InvalidUser):
        users.put({name: User(scram=KEYS)})
    assert not journal.changes


def test_the_number_of_users_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_module, "USERS_MAX", 1)
    users, _ = make()
    users.put({"alice": User(scram=KEYS)})
    with pytest.raises(TooManyRecords, match="maximum of 1 users"):
        users.put({"bob": User(scram=KEYS)})
    users.put({"alice": User()})


def test_what_is_shown_of_a_user_has_no_keys() -> None:
    alice = User(scram=KEYS, sealed=b"sealed-secret")
    shown = repr(alice) + repr(KEYS)
    assert "sealed" not in shown
    assert repr(KEYS["SCRAM-SHA-256"].stored_key)[2:-1] not in shown
