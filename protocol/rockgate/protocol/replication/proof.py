"""Proofs that both sides of a replication connection know one secret, which neither sends."""

from __future__ import annotations

import hmac
from typing import Final

from rockgate.protocol.replication.frames import NO_PROOF

REPLICA: Final = b"replica"
PRIMARY: Final = b"primary"


def proof(secret: bytes, side: bytes, primary_nonce: bytes, replica_nonce: bytes) -> bytes:
    """Return what a side sends; zeros without a secret."""
    if not secret:
        return NO_PROOF
    return hmac.digest(secret, side + primary_nonce + replica_nonce, "sha256")


def is_proven(sent: bytes, expected: bytes) -> bool:
    """Say whether the other side knows the secret, in the same time for each wrong proof."""
    return hmac.compare_digest(sent, expected)
