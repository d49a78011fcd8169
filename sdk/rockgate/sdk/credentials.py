"""Who a client is to brokers and name servers with access control: a name and a secret.

    Producer(…, credentials=Credentials("alice", secret_key), tls=True)

Every request is signed, as Java's AclClientRPCHook does. The secret itself is not sent. Use `tls`
too: whoever reads a signed request can send it again.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rockgate.protocol.remoting.signature import sign

if TYPE_CHECKING:
    from rockgate.protocol.remoting.command import Buffer, Command, Fields

Tls: TypeAlias = bool | ssl.SSLContext
"""Whether to connect over TLS: True trusts what the system trusts, a context what it says."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user's access key and secret key, which never appear in texts."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Reject what no broker would accept."""
        if not self.access_key or not self.secret_key:
            raise ValueError("Credentials need an access key and a secret key.")


class Signing:
    """Signs every request. It has to be the last hook: what others change has to be signed too."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def before_request(self, address: str, code: int, fields: Fields, body: Buffer) -> None:
        """Add the signature to the fields."""
        mine = self._credentials
        fields.update(
            sign(
                fields,
                body,
                access_key=mine.access_key,
                secret=mine.secret_key,
                security_token=mine.security_token,
            )
        )

    def after_response(self, address: str, code: int, answer: Command) -> None:
        """Responses are not signed."""


def context_of(tls: Tls | None) -> ssl.SSLContext | None:
    """The context to connect with; None without TLS."""
    if isinstance(tls, bool):
        return ssl.create_default_context() if tls else None
    return tls
