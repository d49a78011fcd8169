"""Settings of TLS, for all listeners that have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rockgate.gateway.security.tls.principals import DEFAULT, PrincipalRules

ClientAuth = Literal["none", "requested", "required"]
Version = Literal["1.2", "1.3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """Certificates of listeners with TLS; files are PEM, and are read again when they change."""

    certificate_file: Path | None = None
    """Certificate of the server, followed by its chain."""
    key_file: Path | None = None
    """Private key of the certificate; if none, it is in the certificate's file."""
    key_password_file: Path | None = None
    """File whose first line is the password of the key."""
    client_ca_file: Path | None = None
    """Certificates of the authorities that sign those of clients."""
    client_auth: ClientAuth = "none"
    """Whether clients are asked for a certificate, on listeners where it is their principal."""
    version_min: Version = "1.2"
    """Minimum version of TLS."""
    principal_rules: str = DEFAULT
    """How the subject of a client's certificate becomes a user name, in Kafka's form:
    `RULE:pattern/replacement/[LU]` separated by commas; DEFAULT takes all of it."""

    def __post_init__(self) -> None:
        PrincipalRules.parse(self.principal_rules)
        if self.client_auth != "none" and self.client_ca_file is None:
            raise ValueError("client_auth needs client_ca_file")
