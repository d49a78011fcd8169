"""Removes delegation tokens: those that have expired, and those of users who were removed."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from rockgate.gateway.security.delegation.stored_tokens import StoredTokens
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.users import StoredUsers

SLICE_COUNT: Final = 500
"""Tokens that a step checks or removes."""


class TokenExpiry:
    """The step of upkeep. Times are in milliseconds."""

    def __init__(
        self,
        *,
        tokens: StoredTokens,
        users: StoredUsers,
        check_ms: int,
        now_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`now_ms` is a time that a wrong clock cannot move ahead: removals are for good."""
        self._tokens = tokens
        self._users = users
        self._check_ms = check_ms
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms
        self._next_ms = 0
        self._unchecked: list[str] = []
        self._orphans: list[str] = []
        users.on_changed.append(self._follow)

    def step(self) -> bool:
        """Remove some; True if there is more to do."""
        if self._orphans:
            self._remove(self._orphans, self._orphans[-SLICE_COUNT:])
        elif self._unchecked:
            some = self._unchecked[-SLICE_COUNT:]
            self._remove(self._unchecked, [each for each in some if self._is_over(each)], len(some))
        elif self._monotonic_ms() >= self._next_ms:
            self._next_ms = self._monotonic_ms() + self._check_ms
            self._unchecked = list(self._tokens.ids())
        return bool(self._orphans or self._unchecked)

    def _remove(self, left: list[str], ids: list[str], count: int | None = None) -> None:
        """Remove tokens; what is left is shortened only when that has succeeded."""
        self._tokens.remove(ids)
        del left[-(len(ids) if count is None else count) :]

    def _is_over(self, token_id: str) -> bool:
        token = self._tokens.find(token_id)
        if token is None:
            return False
        if token.is_of_user and Principal.parse(token.owner).name not in self._users:
            return True
        return not token.is_valid(self._now_ms())

    def _follow(self, names: AbstractSet[str]) -> None:
        """Users have changed. This is called while a change is applied, so nothing is appended."""
        for name in names:
            if name in self._users:
                continue
            for each in self._tokens.ids_of(str(Principal.user(name))):
                token = self._tokens.find(each)
                if token is not None and token.is_of_user:
                    self._orphans.append(each)
