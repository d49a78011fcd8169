"""SCRAM-SHA-256 and SCRAM-SHA-512, the client's side: `first`, then `final`, then `verify`.

The salted password is computed in `final`: it takes milliseconds, up to the iterations that a
server may demand.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

from rockgate.protocol.sasl.errors import MalformedToken, WrongCredentials
from rockgate.protocol.sasl.scram import ScramMechanism, salted_password

ITERATIONS_MIN: Final = 4_096
"""Fewer make a password too easy to guess for whoever pretends to be the server."""
ITERATIONS_MAX: Final = 1_000_000
_HEADER: Final = b"n,,"


class ScramClient:
    """One exchange."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        *,
        nonce: bytes,
        is_token: bool = False,
    ) -> None:
        """`nonce` is printable and new; `is_token` says that a delegation token is the password."""
        self._mechanism = mechanism
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C").encode()
        extension = b",tokenauth=true" if is_token else b""
        self._bare = b"n=%b,r=%b%b" % (name, nonce, extension)
        self._signature = b""

    def first(self) -> bytes:
        """The client's first message."""
        return _HEADER + self._bare

    def final(self, challenge: bytes) -> bytes:
        """The client's proof, for the server's first message."""
        fields = dict(part.partition(b"=")[::2] for part in challenge.split(b","))
        try:
            nonces, iterations = fields[b"r"], int(fields[b"i"])
            salt = b64decode(fields[b"s"], validate=True)
        except (KeyError, ValueError, Base64Error):
            raise MalformedToken("The server's first SCRAM message cannot be read.") from None
        if not nonces.startswith(self._nonce) or nonces == self._nonce:
            raise MalformedToken("The server's first SCRAM message has another nonce.")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise MalformedToken(f"The server demands {iterations:,} SCRAM iterations.")
        salted = salted_password(self._mechanism, self._password, salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        stored_key = hashlib.new(self._mechanism.hash_name, client_key).digest()
        unsigned = b"c=%b,r=%b" % (b64encode(_HEADER), nonces)
        signed = b",".join((self._bare, challenge, unsigned))
        signature = self._mac(stored_key, signed)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return unsigned + b",p=" + b64encode(proof)

    def verify(self, last: bytes) -> None:
        """Check that the server knows the password too; WrongCredentials if it does not."""
        if not self._signature or not hmac.compare_digest(last, b"v=" + b64encode(self._signature)):
            raise WrongCredentials("The server does not know the password.")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._mechanism.hash_name)
