"""Who the client of a connection with a certificate is; each one is written to the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.grants import WILDCARD
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.gateway.security.tls.principals import NoPrincipal, PrincipalRules, subject_of

Identify: TypeAlias = Callable[[Mapping[str, Any], str, str], Principal]
"""The principal of a certificate, host and listener; ValueError if it has none."""
MECHANISM: Final = "TLS"
RESERVED: Final = frozenset({ANONYMOUS.name, WILDCARD})


class CertificateIdentity:
    """Turns certificates, as `getpeercert` has them, into principals."""

    def __init__(self, rules: PrincipalRules, audit: Audit) -> None:
        self._rules = rules
        self.audit = audit

    def principal(self, certificate: Mapping[str, Any], host: str, listener: str) -> Principal:
        """The principal of a certificate; NoPrincipal, which is a ValueError, if it has none."""
        try:
            name = self._rules.name_of(subject_of(certificate))
            if name in RESERVED:
                raise NoPrincipal(f"its name {name} is reserved")
        except NoPrincipal as error:
            self.refused(host, listener, str(error))
            raise
        found = Principal.user(name)
        self.audit.authenticated(found, host, mechanism=MECHANISM, listener=listener)
        return found

    def refused(self, host: str, listener: str, reason: str) -> None:
        """A client has no certificate, or not a valid one."""
        self.audit.rejected(ANONYMOUS, host, mechanism=MECHANISM, listener=listener, reason=reason)


def is_anonymous(certificate: Mapping[str, Any], host: str, listener: str) -> Principal:
    """No certificate names a client."""
    return ANONYMOUS
