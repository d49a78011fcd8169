"""The fold of users and their credentials (docs/internals/security.md).

A password is not stored: of it there are SCRAM's keys, by mechanism. The secret of RocketMQ's
signatures is stored sealed, by a key that is not in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import Final, NamedTuple

from rockgate.gateway.security.errors import InvalidUser, TooManyRecords
from rockgate.gateway.security.grants import WILDCARD
from rockgate.gateway.security.principal import ANONYMOUS, NAME_CHARS_MAX
from rockgate.protocol.sasl.scram import ScramCredential, ScramMechanism
from rockgate.store.api.folds import Fold, Journal, KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_users"
USERS_MAX: Final = 100_000


class UserType(IntEnum):
    """What a user may do without a grant: nothing, or everything."""

    NORMAL = 1
    SUPER = 2


class UserStatus(IntEnum):
    """Whether a user can log in."""

    DISABLED = 0
    ENABLED = 1


class User(NamedTuple):
    """What is stored of a user."""

    type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLED
    scram: Mapping[str, ScramCredential] = {}
    """Credentials by the SASL name of their mechanism."""
    sealed: bytes = b""
    """The sealed secret of RocketMQ's signatures; empty without one."""

    @property
    def has_credentials(self) -> bool:
        """Whether there is anything to log in with."""
        return bool(self.scram or self.sealed)

    @property
    def is_enabled(self) -> bool:
        """Whether the user can log in."""
        return self.status == UserStatus.ENABLED

    def __repr__(self) -> str:
        """Without credentials."""
        return f"User(type={self.type.name}, status={self.status.name}, scram={[*self.scram]})"


class _Record(NamedTuple):
    """A user as msgpack has it: a plain dictionary, which decodes as such."""

    type: UserType
    status: UserStatus
    scram: dict[str, ScramCredential]
    sealed: bytes


class StoredUsers:
    """All users by name."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[str, _Record] = KeyedFold(
            journal, name="users", topic=TOPIC, key=str, value=_Record, follower=self
        )
        self._fold.on_changed.append(self._notify)
        self._changed: set[str] = set()
        self.on_changed: list[Callable[[AbstractSet[str]], None]] = []
        """Called with the names of users that were set or removed, after they were."""

    @property
    def fold(self) -> Fold:
        """What the store feeds."""
        return self._fold

    # Reading

    def __len__(self) -> int:
        return len(self._fold)

    def __contains__(self, name: str) -> bool:
        return self._fold.has(name)

    def names(self) -> Iterator[str]:
        """The names of all users; valid until the next change."""
        return (name for name, _ in self._fold.items())

    def find(self, name: str) -> User | None:
        """Return a user, enabled or not; None if there is none."""
        found = self._fold.find(name)
        return User(*found) if found is not None else None

    def credential(self, name: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """What a user logs in with; None if there is no such user, mechanism, or it is disabled."""
        found = self._fold.find(name)
        if found is None or found.status != UserStatus.ENABLED:
            return None
        return found.scram.get(mechanism.sasl_name)

    def is_enabled(self, name: str) -> bool:
        """Whether the user exists and can log in."""
        found = self._fold.find(name)
        return found is not None and found.status == UserStatus.ENABLED

    def is_super(self, name: str) -> bool:
        """Whether the user exists, is enabled and may do everything."""
        found = self._fold.find(name)
        return (
            found is not None
            and found.type == UserType.SUPER
            and found.status == UserStatus.ENABLED
        )

    # Changing

    def put(self, users: Mapping[str, User | None]) -> None:
        """Set users, and remove those that are None: all of them or none."""
        items = {
            name: _Record(user.type, user.status, dict(user.scram), user.sealed) if user else None
            for name, user in users.items()
            if user or self._fold.has(name)
        }
        new = [name for name, item in items.items() if item and not self._fold.has(name)]
        for name in new:
            check_name(name)
        if len(self._fold) + len(new) > USERS_MAX:
            raise TooManyRecords(USERS_MAX, "users")
        self._fold.put(items)

    # Notices of the fold

    def was_set(self, name: str, value: _Record, /) -> None:
        """Note a user to notify of."""
        if self.on_changed:
            self._changed.add(name)

    def was_removed(self, name: str, /) -> None:
        """Note a user to notify of."""
        if self.on_changed:
            self._changed.add(name)

    def was_cleared(self) -> None:
        """Notifies no listener: it happens only while the store is opened."""

    def _notify(self) -> None:
        changed, self._changed = self._changed, set()
        for listener in self.on_changed:
            listener(changed)


def check_name(name: str) -> None:
    """Reject a name that no user may have."""
    if not name:
        raise InvalidUser("Username must not be empty.")
    if len(name) > NAME_CHARS_MAX:
        raise InvalidUser(f"Username must not exceed {NAME_CHARS_MAX} characters.")
    if name in (ANONYMOUS.name, WILDCARD):
        raise InvalidUser(f"Username {name} is reserved.")
