"""Assembles users, grants and their decision, which all listeners share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rockgate.gateway.kafka.authentication.oauthbearer import OauthBearer
from rockgate.gateway.remoting.server.periodic import now_and_then
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.authorizer import Authorizer
from rockgate.gateway.security.config import BEARER, SecurityConfig
from rockgate.gateway.security.credentials.failed_attempts import FailedAttempts
from rockgate.gateway.security.credentials.logins import Logins, PasswordThreads
from rockgate.gateway.security.credentials.secret_key import (
    FILE_NAME,
    SecretKey,
    create_key,
    read_key,
)
from rockgate.gateway.security.delegation.expiry import TokenExpiry
from rockgate.gateway.security.delegation.stored_tokens import StoredTokens
from rockgate.gateway.security.delegation.tokens import DelegationTokens, TokenTerms
from rockgate.gateway.security.errors import SecretUnavailable
from rockgate.gateway.security.oauth.config import OauthConfig
from rockgate.gateway.security.stored_grants import StoredGrants
from rockgate.gateway.security.tls.identity import CertificateIdentity
from rockgate.gateway.security.tls.principals import DEFAULT, PrincipalRules
from rockgate.gateway.security.users import StoredUsers
from rockgate.store.clock import Clock
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.upkeep.expiry import TrustedTime

if TYPE_CHECKING:
    from rockgate.gateway.security.oauth.bearer import BearerTokens
    from rockgate.gateway.security.oauth.oauth import Oauth

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SecurityFolds:
    """The folds of users, grants and tokens. Created with the store, which feeds them."""

    users: StoredUsers
    grants: StoredGrants
    tokens: StoredTokens

    @classmethod
    def make(cls, journal: Journal) -> SecurityFolds:
        """Create empty folds; the store restores them."""
        return cls(StoredUsers(journal), StoredGrants(journal), StoredTokens(journal))

    def all(self) -> list[Fold]:
        """All folds, in the order of a snapshot."""
        return [self.users.fold, self.grants.fold, self.tokens.fold]


class SecurityAssembly:
    """What listeners ask about their clients. The app creates one, once the store is open."""

    def __init__(
        self,
        *,
        config: SecurityConfig,
        folds: SecurityFolds,
        data_dir: Path,
        is_authenticating: bool,
        clock: Clock,
        resources: AsyncExitStack,
        oauth: OauthConfig | None = None,
        identity: CertificateIdentity | None = None,
    ) -> None:
        """`is_authenticating`: whether any listener authenticates its clients."""
        self.config = config
        self.users = folds.users
        self.grants = folds.grants
        self.identity = identity or CertificateIdentity(
            PrincipalRules.parse(DEFAULT), Audit(config.audit_lines_max)
        )
        """Whom the certificates of clients name."""
        self.audit = self.identity.audit
        self.failures = FailedAttempts(config.failed_authentication_delay_ms)
        """Failed attempts on all listeners, by address."""
        self.authorizer: Authorizer | None = None
        """Decides what clients may do; None if all of them may do everything."""
        if config.authorization == "on" or (config.authorization == "auto" and is_authenticating):
            self.authorizer = self._make_authorizer()
        key = secret_key_of(config, data_dir)
        _warn_of_another_key(key, self.users)
        self.threads = PasswordThreads(config.password_threads)
        """Hash passwords."""
        resources.callback(self.threads.close)
        self.logins = Logins(
            users=self.users,
            threads=self.threads,
            key=key,
            iterations=config.scram_iterations,
        )
        """Checks passwords."""
        self.tokens = DelegationTokens(
            stored=folds.tokens,
            users=self.users,
            key=key,
            threads=self.threads,
            terms=TokenTerms(
                is_enabled=config.delegation_tokens,
                lifetime_ms=config.token_lifetime_ms_max,
                expiry_ms=config.token_expiry_ms,
            ),
            now_ms=clock.now_ms,
        )
        self._token_expiry = TokenExpiry(
            tokens=folds.tokens,
            users=self.users,
            check_ms=config.token_check_ms,
            now_ms=TrustedTime(clock).now_ms,
            monotonic_ms=clock.monotonic_ms,
        )

        self._clock = clock
        self._oauth: Oauth | None = None
        self.bearers: OauthBearer | None = None
        """The mechanism OAUTHBEARER, if it is enabled."""
        if is_authenticating and BEARER in config.mechanisms():
            self._oauth, self.bearers = self._open_oauth(oauth or OauthConfig(), clock, resources)

    def _open_oauth(
        self, config: OauthConfig, clock: Clock, resources: AsyncExitStack
    ) -> tuple[Oauth, OauthBearer]:
        # Imported by servers with this mechanism only: it takes a while.
        from rockgate.gateway.security.oauth.oauth import Oauth

        oauth = Oauth.make(config, clock, resources)
        return oauth, OauthBearer(oauth.tokens, self.is_disabled)

    def is_disabled(self, name: str) -> bool:
        """Whether there is a user of that name who may not log in."""
        return name in self.users and not self.users.is_enabled(name)

    @property
    def oauth_tokens(self) -> BearerTokens | None:
        """What checks tokens of an OAuth server, if OAUTHBEARER is enabled."""
        return None if self._oauth is None else self._oauth.tokens

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Periodic work: each call does a little, and returns true while there is more."""
        steps = {"delegation-tokens": self._token_expiry.step}
        if self._oauth is not None:
            steps["signing-keys"] = now_and_then(self._clock, self._oauth.keys.renew)
        return steps

    @property
    def deciding_grants(self) -> StoredGrants | None:
        """The grants, if they decide anything: those who manage them have to know."""
        return self.grants if self.authorizer is not None else None

    def _make_authorizer(self) -> Authorizer:
        authorizer = Authorizer(
            index=self.grants.index,
            users=self.users,
            super_users=self.config.super_principals(),
            allows_unmentioned=self.config.allow_everyone_if_no_acl,
        )
        self.grants.on_changed.append(authorizer.changed)
        self.users.on_changed.append(lambda names: authorizer.changed())
        return authorizer


def secret_key_of(config: SecurityConfig, data_dir: Path) -> SecretKey:
    """Read the key, or make one for the first start; StartError if neither can be done."""
    path = config.secret_key_file or data_dir / FILE_NAME
    try:
        key = read_key(path)
        if key is None:
            key = create_key(path)
            log.info("secret key created file=%s", path)
    except SecretUnavailable as error:
        raise StartError(str(error)) from error
    return key


def _warn_of_another_key(key: SecretKey, users: StoredUsers) -> None:
    unusable = sum(1 for name in users.names() if not _is_readable(key, users, name))
    if unusable:
        log.error(
            "secret key is another one than before, signatures cannot be checked users=%d", unusable
        )


def _is_readable(key: SecretKey, users: StoredUsers, name: str) -> bool:
    """Whether the user has no secret, or one that this key has sealed."""
    user = users.find(name)
    return user is None or not user.sealed or key.open(name, user.sealed) is not None
