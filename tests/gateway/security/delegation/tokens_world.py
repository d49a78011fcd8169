"""Delegation tokens over folds in memory, with a time of day that tests set."""

from __future__ import annotations

from tests.store.journals import MemoryJournal

from rockgate.gateway.security.credentials.logins import PasswordThreads, scram_of
from rockgate.gateway.security.credentials.secret_key import SecretKey
from rockgate.gateway.security.delegation.expiry import TokenExpiry
from rockgate.gateway.security.delegation.stored_tokens import StoredTokens
from rockgate.gateway.security.delegation.token import IssuedToken
from rockgate.gateway.security.delegation.tokens import DelegationTokens, TokenTerms
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.users import StoredUsers, User, UserStatus

ALICE, BOB, CAROL = (Principal.user(name) for name in ("alice", "bob", "carol"))
NOW_MS = 1_700_000_000_000
LIFETIME_MS, EXPIRY_MS, CHECK_MS = 7_000, 1_000, 500
KEY = SecretKey(b"k" * 32)


class TokensWorld:
    """Users alice and bob, and tokens."""

    def __init__(self, key: SecretKey = KEY, *, is_enabled: bool = True) -> None:
        users_journal, self.journal = MemoryJournal(), MemoryJournal()
        self.users, self.stored = StoredUsers(users_journal), StoredTokens(self.journal)
        users_journal.attach(self.users.fold)
        self.journal.attach(self.stored.fold)
        self.users.put({name: User(scram=scram_of(name, 4_096)) for name in ("alice", "bob")})
        self.now_ms, self.elapsed_ms = NOW_MS, 0
        self.removed: list[str] = []
        self.stored.on_removed.append(lambda ids: self.removed.extend(sorted(ids)))
        self.threads = PasswordThreads(1)
        self.tokens = self.made(key, is_enabled=is_enabled)
        self.expiry = TokenExpiry(
            tokens=self.stored,
            users=self.users,
            check_ms=CHECK_MS,
            now_ms=lambda: self.now_ms,
            monotonic_ms=lambda: self.elapsed_ms,
        )

    def made(self, key: SecretKey, *, is_enabled: bool = True) -> DelegationTokens:
        """What decides about the same tokens, with a key."""
        terms = TokenTerms(is_enabled=is_enabled, lifetime_ms=LIFETIME_MS, expiry_ms=EXPIRY_MS)
        return DelegationTokens(
            stored=self.stored,
            users=self.users,
            key=key,
            threads=self.threads,
            terms=terms,
            now_ms=lambda: self.now_ms,
        )

    def create(
        self, owner: Principal = ALICE, *renewers: Principal, lifetime_ms: int = -1
    ) -> IssuedToken:
        return self.tokens.create(
            requester=owner, owner=owner, renewers=renewers, lifetime_ms=lifetime_ms
        )

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, on both clocks."""
        self.now_ms += milliseconds
        self.elapsed_ms += milliseconds

    def disable(self, name: str) -> None:
        found = self.users.find(name)
        assert found is not None
        self.users.put({name: found._replace(status=UserStatus.DISABLED)})

    def tidy(self) -> None:
        """Run the step of upkeep until there is nothing left to do."""
        while self.expiry.step():
            pass
