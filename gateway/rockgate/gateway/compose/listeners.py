"""Binds the listeners of every protocol, and says on the ready line where they are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from rockgate.gateway.compose.config import Config
from rockgate.gateway.net.connection_counts import ConnectionCounts
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.net.listening.listeners import Listeners, NewSession
from rockgate.gateway.remoting.server.periodic import now_and_then
from rockgate.gateway.runtime.errors import ConfigError, StartError
from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.config import SecurityConfig
from rockgate.gateway.security.tls.acceptor import TlsAcceptor, asks_for_certificates
from rockgate.gateway.security.tls.config import TlsConfig
from rockgate.gateway.security.tls.contexts import TlsContexts
from rockgate.gateway.security.tls.identity import CertificateIdentity
from rockgate.gateway.security.tls.principals import PrincipalRules
from rockgate.store.api.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListeners:
    """The listeners of `rockgate serve`, bound and not yet listening."""

    kafka: Listeners
    remoting: Listeners
    namesrv: Listeners
    http: Listeners
    contexts: TlsContexts | None
    """The certificates, if any listener has TLS."""
    identity: CertificateIdentity
    """Whom the certificates of clients name."""

    @classmethod
    def bind(
        cls, resources: AsyncExitStack, config: Config, given: Collection[str]
    ) -> ServerListeners:
        """Bind all of them; `given` names the settings that were set explicitly."""
        wanted = endpoints_of(config, given)
        every = [endpoint for endpoints in wanted.values() for endpoint in endpoints]
        refuse_anonymous(every, config)
        contexts = tls_contexts(every, config)
        identity = certificate_identity(config)
        bound = {
            name: bind(resources, each, config, contexts, identity) for name, each in wanted.items()
        }
        counts = connection_counts(config.security)
        for name in ("kafka", "remoting", "namesrv"):
            bound[name].counts = counts
        return cls(contexts=contexts, identity=identity, **bound)

    def endpoints(self) -> list[Endpoint]:
        """All listeners, protocol by protocol."""
        every = (self.kafka, self.remoting, self.namesrv, self.http)
        return [endpoint for listeners in every for endpoint in listeners.endpoints]

    def upkeep(self, clock: Clock) -> dict[str, Callable[[], bool]]:
        """Periodic work: certificates are read again when their files change."""
        if self.contexts is None:
            return {}
        return {"certificates": now_and_then(clock, self.contexts.renew)}


def certificate_identity(config: Config) -> CertificateIdentity:
    """Make what says whom the certificates of clients name."""
    rules = PrincipalRules.parse(config.tls.principal_rules)
    return CertificateIdentity(rules, Audit(config.security.audit_lines_max))


def connection_counts(config: SecurityConfig) -> ConnectionCounts:
    """The limits of connections, which the listeners of all protocols share."""
    return ConnectionCounts(config.connections_per_address_max, config.connections_per_user_max)


def endpoints_of(config: Config, given: Collection[str]) -> dict[str, list[Endpoint]]:
    """The listeners of each protocol; ConfigError if they contradict each other."""
    try:
        return {
            "kafka": config.kafka.endpoints(given),
            "remoting": config.remoting.endpoints(given),
            "namesrv": config.namesrv.endpoints(given),
            "http": [config.http.endpoint()],
        }
    except ValueError as error:
        raise ConfigError([f"Invalid listeners: {error}."]) from None


def tls_contexts(endpoints: Iterable[Endpoint], config: Config) -> TlsContexts | None:
    """The certificates, if a listener has TLS; StartError if they cannot be used."""
    if all(each.tls == "disabled" or each.address.is_closed for each in endpoints):
        return None
    return TlsContexts(config.tls)


def authenticates(endpoint: Endpoint, config: TlsConfig) -> bool:
    """Whether clients of a listener may have another principal than ANONYMOUS."""
    if endpoint.authentication != "none":
        return True
    return asks_for_certificates(endpoint) and config.client_auth != "none"


def refuse_anonymous(endpoints: Iterable[Endpoint], config: Config) -> None:
    """Refuse to let other machines in without authentication, or warn if the settings insist."""
    every = list(endpoints)
    is_authenticating = any(authenticates(each, config.tls) for each in every)
    for endpoint in every:
        if endpoint.is_local or endpoint.authentication != "none":
            continue
        if endpoint.protocol == "http":
            if _pages_need_a_login(endpoint, config, is_authenticating=is_authenticating):
                continue
        elif endpoint.tls == "enforcing" and config.tls.client_auth == "required":
            continue
        where = f"Listener {endpoint.label} at {endpoint.address}"
        if not config.security.allow_anonymous:
            raise StartError(
                f"{where} is open to other machines, and does not authenticate them. Bind a"
                " loopback address, set up authentication, or set security.allow_anonymous=true."
            )
        log.warning(
            "listener is open to other machines without authentication listener=%s address=%s",
            endpoint.label,
            endpoint.address,
        )


def _pages_need_a_login(endpoint: Endpoint, config: Config, *, is_authenticating: bool) -> bool:
    """Whether HTTP demands logins whatever users there are; StartError if they were in clear."""
    authentication, security = config.http.authentication, config.security
    is_deciding = security.authorization == "on" or (
        security.authorization == "auto" and is_authenticating
    )
    if authentication != "on" and not (authentication == "auto" and is_deciding):
        return False
    if endpoint.tls == "enforcing" or security.allow_plain_without_tls:
        return True
    if security.allow_anonymous:
        return False
    raise StartError(
        f"Listener http at {endpoint.address} is open to other machines, which would send their"
        " passwords in clear. Set http.tls=true, bind a loopback address, or set"
        " security.allow_plain_without_tls=true."
    )


def bind(
    resources: AsyncExitStack,
    endpoints: Sequence[Endpoint],
    config: Config,
    contexts: TlsContexts | None,
    identity: CertificateIdentity,
) -> Listeners:
    """Bind the listeners of one protocol; `resources` closes them."""
    seconds_max = config.security.authentication_ms_max / 1000

    def secured(session: NewSession) -> TlsAcceptor:
        assert contexts is not None
        return TlsAcceptor(
            contexts, seconds_max=seconds_max, session=session, on_refused=identity.refused
        )

    listeners = Listeners.bind(endpoints, secured)
    resources.callback(listeners.close)
    return listeners


def ready(endpoints: Iterable[Endpoint]) -> str:
    """The ready line: the first listener of each protocol in order, then those with a name."""
    parts = sorted(endpoints, key=lambda endpoint: not endpoint.is_first)
    return " ".join(["ready", *(f"{each.label}={each.address}" for each in parts)])
