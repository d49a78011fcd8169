"""Who may read the pages of the HTTP listener: its logins, and what each failure is answered with.

| a request of | is answered with |
|---|---|
| `/health`, `/ready` | the page |
| any other page, before users are known | 503 |
| any other page, where no login is demanded | the page, if ANONYMOUS may have it |
| one without a login | 401, which names the schemes that are taken |
| one with a login in clear, on a listener that other machines reach | 403 |
| one with a wrong login | 401, after the delay of every failed authentication |
| one of a user who may not describe the cluster | 403 |

Basic takes a user's password, Bearer a token: one that an OAuth server has signed where OAUTHBEARER
is enabled, or else that of `http.token_file`, which is for these pages alone and takes no grant.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

from rockgate.gateway.http.head import Request
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.security.access import Access
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.gateway.security.principal import ANONYMOUS, NAME_CHARS_MAX, Principal
from rockgate.protocol.sasl.errors import SaslError

OPEN: Final = frozenset({"/health", "/ready"})
"""Pages that everyone may read."""
BASIC, BEARER = "BASIC", "BEARER"
CREDENTIALS_BYTES_MAX: Final = 8_192
_HEADER: Final = re.compile(rb"([A-Za-z]{1,16}) +([!-~]{1,8192})")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRefusal:
    """Why a page is refused; `schemes` are the logins that would be taken."""

    status: HTTPStatus
    reason: str
    schemes: tuple[str, ...] = ()


class PasswordChecks(Protocol):
    """Checks passwords."""

    def check_password(self, name: str, password: str, /) -> Awaitable[bool]:
        """Whether it is the password of a user who can log in, in the same time for all."""


class FailedLogins(Protocol):
    """Counts failed authentications by address, and says what they cost."""

    def count(self, host: str, now: float, /) -> None:
        """An attempt has failed."""

    def delay_seconds(self, host: str, now: float, /, *, has_failed: bool) -> float:
        """How long after the client's message the response is sent, at the earliest."""


class PageAudit(Protocol):
    """Where logins and refusals are written down."""

    def authenticated(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str
    ) -> None:
        """A client has proven who it is."""

    def rejected(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str, reason: str
    ) -> None:
        """A client has not proven to be the principal that it claims to be."""

    def refused(
        self, principal: Principal, host: str, /, *, api: str, operation: str, resource: str
    ) -> None:
        """A request was refused."""


class Tokens(Protocol):
    """Checks bearer tokens."""

    def principal(self, token: str, /) -> Awaitable[Principal]:
        """Whom a token is about; SaslError if it is not valid."""

    @property
    def takes_grants(self) -> bool:
        """Whether whom it is about needs a grant; a token for these pages alone is one."""


class WrongLogin(Exception):
    """A login that has failed; `claimed` is the name that was given."""

    def __init__(self, claimed: str, reason: str) -> None:
        super().__init__(reason)
        self.claimed = claimed


class PageAccess:
    """Decides about requests. `opened` is called once users are known."""

    def __init__(
        self,
        *,
        passwords: PasswordChecks,
        failures: FailedLogins,
        audit: PageAudit,
        access: Access | None,
        demands_login: Callable[[], bool],
        tokens: Tokens | None,
        is_clear_allowed: bool,
    ) -> None:
        """`demands_login` is asked again for each request: users come and go."""
        self._passwords = passwords
        self._failures = failures
        self._audit = audit
        self._access = access
        self._demands_login = demands_login
        self._tokens = tokens
        self._is_clear_allowed = is_clear_allowed
        self.schemes = ("Bearer", "Basic") if tokens is not None else ("Basic",)

    async def refusal(self, request: Request, host: str, endpoint: Endpoint) -> PageRefusal | None:
        """Why the client of a request may not read its page; None if it may."""
        if not self._demands_login():
            return self._check(ANONYMOUS, host, request.path)
        if not self._is_confidential(endpoint):
            return PageRefusal(
                status=HTTPStatus.FORBIDDEN,
                reason="this page needs a login, which is not taken without TLS: set http.tls",
            )
        if request.authorization is None:
            return self._unauthorized("this page needs a login")
        return await self._log_in(request.authorization, request.path, host, endpoint)

    async def _log_in(
        self, header: bytes, path: str, host: str, endpoint: Endpoint
    ) -> PageRefusal | None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        match = _HEADER.fullmatch(header)
        scheme = match[1].upper().decode() if match is not None else ""
        takes_grants = True
        try:
            if match is not None and scheme == BASIC:
                principal = await self._by_password(match[2])
            elif match is not None and scheme == BEARER and self._tokens is not None:
                principal = await self._by_token(self._tokens, match[2].decode())
                takes_grants = self._tokens.takes_grants
            else:
                raise WrongLogin("", "scheme")
        except WrongLogin as error:
            self._failures.count(host, loop.time())
            self._audit.rejected(
                Principal.user(error.claimed or ANONYMOUS.name),
                host,
                mechanism=scheme if scheme in (BASIC, BEARER) else "UNKNOWN",
                listener=endpoint.label,
                reason=str(error),
            )
            await self._wait(started, host, has_failed=True)
            return self._unauthorized("the login is wrong")
        await self._wait(started, host, has_failed=False)
        self._audit.authenticated(principal, host, mechanism=scheme, listener=endpoint.label)
        return self._check(principal, host, path) if takes_grants else None

    async def _by_password(self, encoded: bytes) -> Principal:
        try:
            text = b64decode(encoded, validate=True).decode()
        except (NotBase64, UnicodeDecodeError):
            raise WrongLogin("", "malformed") from None
        name, colon, password = text.partition(":")
        claimed = name[:NAME_CHARS_MAX]
        if not colon or not name or not password:
            raise WrongLogin(claimed, "malformed")
        if not await self._passwords.check_password(name, password):
            raise WrongLogin(claimed, "The user or the password is wrong.")
        return Principal.user(name)

    async def _by_token(self, tokens: Tokens, token: str) -> Principal:
        try:
            return await tokens.principal(token)
        except SaslError as error:
            raise WrongLogin("", str(error)) from None

    def _check(self, principal: Principal, host: str, path: str) -> PageRefusal | None:
        """The refusal of a client without the grant."""
        access, operation, cluster = self._access, AclOperation.DESCRIBE, AclResourceType.CLUSTER
        if access is None or access.may(principal, host, operation, cluster, CLUSTER_NAME):
            return None
        self._audit.refused(
            principal,
            host,
            api=path,
            operation=operation.name,
            resource=f"{cluster.name}:{CLUSTER_NAME}",
        )
        return PageRefusal(
            status=HTTPStatus.FORBIDDEN,
            reason=f"{principal} may not read this page: it needs Describe on the cluster",
        )

    def _unauthorized(self, reason: str) -> PageRefusal:
        return PageRefusal(status=HTTPStatus.UNAUTHORIZED, reason=reason, schemes=self.schemes)

    def _is_confidential(self, endpoint: Endpoint) -> bool:
        """Whether no one but its two ends reads what a connection transfers."""
        return endpoint.tls == "enforcing" or endpoint.is_local or self._is_clear_allowed

    async def _wait(self, started: float, host: str, *, has_failed: bool) -> None:
        """Wait as long as the address has to, since the request."""
        now = asyncio.get_running_loop().time()
        seconds = self._failures.delay_seconds(host, now, has_failed=has_failed)
        await asyncio.sleep(max(started + seconds - now, 0))
