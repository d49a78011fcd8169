"""Who a request comes from: the user who signed it, else whom the connection's certificate names.

A request without a valid signature is refused before anything of it is read. Nothing in the
response or its time tells a user who does not exist from a wrong signature. A failure counts
against the address, and its response is delayed.
"""

from __future__ import annotations

import secrets as random
from collections.abc import Callable
from typing import Protocol

from rockgate.gateway.remoting.server.caller import Caller, Peer
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.security.principal import ANONYMOUS, NAME_CHARS_MAX, Principal
from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE

MECHANISM = "SIGNATURE"
UNSIGNED = "username cannot be null."
REJECTED = "check signature failed."


class Secrets(Protocol):
    """The secrets that users sign with."""

    def secret(self, name: str, /) -> bytes | None:
        """The secret of a user who exists, is enabled and has one; else None."""


class SignatureAudit(Protocol):
    """Where authentications are written down."""

    def authenticated(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str
    ) -> None:
        """A client has proven who it is."""

    def rejected(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str, reason: str
    ) -> None:
        """A client has not proven to be the principal that it claims to be."""


class Unauthenticated(Refused):
    """A request without a valid signature."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.NO_PERMISSION, remark)


class RequestAuthentication(Protocol):
    """Tells who a request comes from."""

    def principal(self, command: Command, caller: Caller, /) -> Principal:
        """The principal of a request; Unauthenticated if it has none."""

    def is_valid(self, principal: Principal, caller: Caller, /) -> bool:
        """Whether a principal that was authenticated before still could be."""


class Signed:
    """Demands signatures from clients without a certificate, where the listener does."""

    def __init__(
        self,
        secrets: Secrets,
        *,
        demands: Callable[[Peer], bool] = lambda peer: True,
        audit: SignatureAudit | None = None,
        listener: str = "",
    ) -> None:
        """`demands`: whether the listener of a connection does."""
        self._secrets = secrets
        self._demands = demands
        self._audit = audit
        self._listener = listener
        # Checked in place of the secret of a user who does not exist.
        self._decoy = random.token_bytes(16)

    def principal(self, command: Command, caller: Caller) -> Principal:
        """The user whose secret signed the request, or else the certificate's principal."""
        peer = caller.peer
        if not self._demands(peer):
            # Frequent requests are not forwarded, and their fields not even read.
            if command.header is None:
                _strip(command)
            peer.unsigned = _as(peer, peer.certified or ANONYMOUS)
            return peer.unsigned
        name = command.all_fields().get(ACCESS_KEY)
        if not name:
            if peer.certified is not None:
                return _as(peer, peer.certified)
            self._reject(ANONYMOUS.name, peer, "unsigned")
            raise Unauthenticated(UNSIGNED)
        secret = self._secrets.secret(name) if len(name) <= NAME_CHARS_MAX else None
        is_signed = signature.verify(command, self._decoy if secret is None else secret)
        if not is_signed or secret is None:
            self._reject(name, peer, "signature")
            raise Unauthenticated(REJECTED)
        _strip(command)
        known = peer.principal
        if known.name == name:
            return known
        return self._enter(name, caller)

    def is_valid(self, principal: Principal, caller: Caller) -> bool:
        """Whether the user can still sign; a certificate's principal need not be a user."""
        if principal == caller.peer.certified or not self._demands(caller.peer):
            return True
        return self._secrets.secret(principal.name) is not None

    def _enter(self, name: str, caller: Caller) -> Principal:
        """Another user than that of the request before."""
        peer, found = caller.peer, Principal.user(name)
        if not caller.enter(found):
            raise Unauthenticated("the user has too many connections.")
        peer.become(found)
        if self._audit is not None:
            self._audit.authenticated(
                found, peer.remote.host, mechanism=MECHANISM, listener=self._listener
            )
        return found

    def _reject(self, name: str, peer: Peer, reason: str) -> None:
        if self._audit is not None:
            self._audit.rejected(
                Principal.user(name[:NAME_CHARS_MAX]),
                peer.remote.host,
                mechanism=MECHANISM,
                listener=self._listener,
                reason=reason,
            )


def _as(peer: Peer, principal: Principal) -> Principal:
    """Without a signature: the same principal as the connection's other requests, nearly always."""
    if peer.principal is not principal:
        peer.become(principal)
    return principal


def _strip(command: Command) -> None:
    """Remove the signature's fields: some requests are forwarded to other clients."""
    fields = command.fields
    if ACCESS_KEY in fields:
        del fields[ACCESS_KEY]
    fields.pop(SIGNATURE, None)
    fields.pop(SECURITY_TOKEN, None)
