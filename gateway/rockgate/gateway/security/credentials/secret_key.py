"""The key that seals secrets in the log: a file of its own, outside of it.

    secret.key   32 bytes, in hexadecimal and a line break; readable by the server's user only

RocketMQ's signatures can only be checked with the secret itself, so that it has to be stored. The
same key makes the salts of users who do not exist, which must stay the same over a restart.
"""

from __future__ import annotations

import hmac
import os
import secrets
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rockgate.gateway.security.errors import SecretUnavailable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FILE_NAME: Final = "secret.key"
KEY_SIZE: Final = 32
NONCE_SIZE: Final = 12
SECRET_SIZE_MAX: Final = 1_024


class SecretKey:
    """The key, once it was read."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == KEY_SIZE
        self._key = key

    def __repr__(self) -> str:
        """Without the key."""
        return "SecretKey()"

    def derived(self, purpose: str) -> bytes:
        """Another key, which does not tell this one."""
        return hmac.digest(self._key, purpose.encode(), "sha256")

    @cached_property
    def _sealing(self) -> AESGCM:
        # Imported by servers with such secrets only: it takes as long as the rest of a start.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.derived("secrets of users"))

    def seal(self, user: str, secret: str) -> bytes:
        """Encrypt a user's secret; the result is of no use for another user."""
        text = secret.encode()
        if not 0 < len(text) <= SECRET_SIZE_MAX:
            raise SecretUnavailable(f"A secret must have 1 to {SECRET_SIZE_MAX:,} bytes.")
        nonce = secrets.token_bytes(NONCE_SIZE)
        return nonce + self._sealing.encrypt(nonce, text, user.encode())

    def open(self, user: str, sealed: bytes) -> str | None:
        """Decrypt a user's secret; None if it was sealed by another key or for another user."""
        from cryptography.exceptions import InvalidTag

        nonce, text = sealed[:NONCE_SIZE], sealed[NONCE_SIZE:]
        try:
            return self._sealing.decrypt(nonce, text, user.encode()).decode()
        except (InvalidTag, ValueError):
            return None


def read_key(path: Path) -> SecretKey | None:
    """Read the key; None if the file does not exist, SecretUnavailable if it is of no use."""
    try:
        with path.open("rb") as file:
            text = file.read(KEY_SIZE * 2 + 2)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SecretUnavailable(f"Cannot read {path}: {error.strerror or error}.") from error
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_SIZE:
        raise SecretUnavailable(
            f"Cannot use {path}: it must hold {KEY_SIZE * 2} hexadecimal digits."
        )
    return SecretKey(key)


def create_key(path: Path) -> SecretKey:
    """Make a key and its file, which only its owner can read; SecretUnavailable if it exists."""
    key = secrets.token_bytes(KEY_SIZE)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key.hex().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SecretUnavailable(f"Cannot create {path}: {error.strerror or error}.") from error
    return SecretKey(key)
