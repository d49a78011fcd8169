"""The mechanisms that are enabled, and an authenticator for each listener that demands SASL."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from rockgate.gateway.kafka.authentication.authenticator import (
    AuthenticationAudit,
    Authenticator,
)
from rockgate.gateway.kafka.authentication.mechanism import Mechanism
from rockgate.gateway.kafka.authentication.plain import Passwords, Plain
from rockgate.gateway.kafka.authentication.scram import (
    Scram,
    ScramTokens,
    ScramUsers,
)
from rockgate.gateway.net.clock import Clock
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.config import BEARER, SecurityConfig
from rockgate.gateway.security.credentials.failed_attempts import FailedAttempts
from rockgate.gateway.security.delegation.token import TokenCredential
from rockgate.protocol.sasl.scram import ScramMechanism

IN_CLEAR: Final = frozenset({"PLAIN", BEARER})
"""Mechanisms that send what a client authenticates with."""
log = logging.getLogger(__name__)


class CheckedLogins(Passwords, ScramUsers, Protocol):
    """Checks what clients log in with."""


class NoTokens:
    """Stands in where there are no delegation tokens."""

    async def token_credential(
        self, token_id: str, mechanism: ScramMechanism
    ) -> TokenCredential | None:
        """None: there is no token."""
        return None

    def is_usable(self, token_id: str) -> bool:
        """No: there is no token."""
        return False


def authenticators(
    endpoints: Iterable[Endpoint],
    config: SecurityConfig,
    *,
    logins: CheckedLogins,
    audit: AuthenticationAudit,
    failures: FailedAttempts,
    clock: Clock,
    now_ms: Callable[[], int],
    tokens: ScramTokens | None = None,
    bearers: Mechanism | None = None,
) -> dict[str, Authenticator]:
    """The authenticator of each listener with SASL, by the listener's name.

    `bearers` is the mechanism OAUTHBEARER, if it is enabled.
    """
    every = _mechanisms(config, logins, tokens or NoTokens(), bearers)
    return {
        endpoint.name: Authenticator(
            listener=endpoint.label,
            mechanisms=_offered(endpoint, every, config),
            failures=failures,
            audit=audit,
            clock=clock,
            now_ms=now_ms,
            seconds_max=config.authentication_ms_max / 1000,
            session_ms_max=config.reauthentication_ms_max or None,
        )
        for endpoint in endpoints
        if endpoint.authentication == "sasl"
    }


def _mechanisms(
    config: SecurityConfig, logins: CheckedLogins, tokens: ScramTokens, bearers: Mechanism | None
) -> dict[str, Mechanism]:
    """All mechanisms that are enabled, in the order of the setting."""
    known: dict[str, Mechanism] = {"PLAIN": Plain(logins)}
    if bearers is not None:
        known[BEARER] = bearers
    for each in ScramMechanism:
        known[each.sasl_name] = Scram(each, users=logins, tokens=tokens)
    return {name: known[name] for name in config.mechanisms()}


def _offered(
    endpoint: Endpoint, every: dict[str, Mechanism], config: SecurityConfig
) -> dict[str, Mechanism]:
    """The mechanisms of one listener: some send secrets in clear, and take TLS, or permission."""
    if endpoint.tls == "enforcing" or config.allow_plain_without_tls:
        return every
    offered = {name: each for name, each in every.items() if name not in IN_CLEAR}
    withheld = " and ".join(name for name in every if name in IN_CLEAR)
    if not offered:
        raise StartError(
            f"Listener {endpoint.label} offers no SASL mechanism: {withheld} would send secrets in"
            " clear. Use SASL_SSL, enable SCRAM in security.sasl_mechanisms, or set"
            " security.allow_plain_without_tls."
        )
    if withheld:
        log.info("%s not offered without TLS listener=%s", withheld, endpoint.label)
    return offered
