"""Settings of OAUTHBEARER."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from rockgate.gateway.net.listening.endpoint import is_loopback

SCHEMES: Final = ("file", "http", "https")


@dataclass(frozen=True, slots=True, kw_only=True)
class OauthConfig:
    """Tokens that clients of Kafka's listeners authenticate with, by OAUTHBEARER."""

    jwks: str = ""
    """Where the keys are that sign tokens: a file or an HTTPS URL with a JSON Web Key Set."""
    issuer: str = ""
    """Issuer that tokens must have; any if empty."""
    audience: str = ""
    """Audiences separated by commas, of which tokens must have one; any if empty."""
    subject_claim: str = "sub"
    """Claim whose value is the user name."""
    scope_claim: str = "scope"
    """Claim that lists scopes; its form is checked."""
    clock_skew_ms: int = field(default=30_000, metadata={"minimum": 0, "maximum": 3_600_000})
    """How far the clock of the issuer may differ."""
    refresh_ms: int = field(default=3_600_000, metadata={"minimum": 1_000, "maximum": 2**31 - 1})
    """How often the keys are fetched from a URL; files are read again when they change."""
    ca_file: Path | None = None
    """Certificates of the authorities that the URL's server may have, beside the system's."""

    def __post_init__(self) -> None:
        """Reject a source of keys that is not to be trusted."""
        self.source()
        if not self.subject_claim or not self.scope_claim:
            raise ValueError("subject_claim and scope_claim must not be empty")

    def audiences(self) -> frozenset[str]:
        """The values of `audience`."""
        return frozenset(each.strip() for each in self.audience.split(",") if each.strip())

    def source(self) -> Path | str | None:
        """The file or the URL of the keys; None without one."""
        if not self.jwks:
            return None
        parts = urlsplit(self.jwks)
        if parts.scheme not in SCHEMES or not self.jwks.startswith(f"{parts.scheme}:/"):
            return Path(self.jwks)
        if parts.scheme == "file":
            return Path(parts.path)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise ValueError("jwks must be a file or an https URL; http is for loopback only")
        return self.jwks
