"""Settings of users, grants, the audit, and the limits of clients that are not trusted yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.scram import ITERATIONS_MAX, ITERATIONS_MIN

BEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", BEARER)
SUPER_USERS_SEPARATOR = ";"
"""Kafka's: names from certificates have commas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """Who may do what, for both wires."""

    authorization: Literal["auto", "on", "off"] = "auto"
    """Whether grants decide what clients may do; auto: if any listener authenticates clients."""
    super_users: str = ""
    """Principals that may do everything, separated by semicolons: User:admin;User:ops."""
    allow_everyone_if_no_acl: bool = False
    """Whether all clients may use a resource that no grant is about."""
    secret_key_file: Path | None = None
    """Key that seals secrets in the log; if none, `secret.key` in the data directory."""
    scram_iterations: int = field(
        default=4_096, metadata={"minimum": ITERATIONS_MIN, "maximum": ITERATIONS_MAX}
    )
    """Iterations of passwords that the server hashes; those of clients choose their own."""
    password_threads: int = field(default=2, metadata={"minimum": 1, "maximum": 64})
    """Threads that hash passwords; more requests wait for one of them."""
    audit_lines_max: int = field(default=200, metadata={"minimum": 0, "maximum": 1_000_000})
    """Audit lines of a kind per second; more are counted and not written."""
    allow_anonymous: bool = False
    """Start although a listener beyond loopback does not authenticate its clients."""
    authentication_ms_max: int = field(default=10_000, metadata={"minimum": 10, "maximum": 600_000})
    """Time in which a new connection must complete its TLS handshake, and authenticate."""
    reauthentication_ms_max: int = field(default=0, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """Time after which a client of a SASL listener must authenticate again; 0 never."""
    failed_authentication_delay_ms: int = field(
        default=100, metadata={"minimum": 0, "maximum": 10_000}
    )
    """Delay of the response to a failed authentication; ten times that for addresses with many."""
    sasl_mechanisms: str = "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN"
    """Enabled SASL mechanisms, separated by commas: SCRAM-SHA-512, SCRAM-SHA-256, PLAIN,
    OAUTHBEARER. The last two are offered over TLS only."""
    allow_plain_without_tls: bool = False
    """Offer PLAIN and OAUTHBEARER without TLS too, where passwords and tokens can be read on the
    network."""
    delegation_tokens: bool = False
    """Let authenticated Kafka clients create delegation tokens."""
    token_lifetime_ms_max: int = field(
        default=7 * 86_400_000, metadata={"minimum": 1, "maximum": 2**53}
    )
    """Maximum time between the creation of a delegation token and its end."""
    token_expiry_ms: int = field(default=86_400_000, metadata={"minimum": 1, "maximum": 2**53})
    """Time after which a delegation token must be renewed."""
    token_check_ms: int = field(default=3_600_000, metadata={"minimum": 1, "maximum": 2**53})
    """How often delegation tokens that have expired are removed."""
    connections_per_address_max: int = field(
        default=2**31 - 1, metadata={"minimum": 1, "maximum": 2**31 - 1}
    )
    """Maximum number of connections from one address, over all listeners but HTTP's; further ones
    are closed on accept."""
    connections_per_user_max: int = field(
        default=2**31 - 1, metadata={"minimum": 1, "maximum": 2**31 - 1}
    )
    """Maximum number of connections of one user, over all listeners; further ones are closed when
    they have authenticated."""

    def __post_init__(self) -> None:
        """Reject principals and mechanisms that cannot be read."""
        self.super_principals()
        self.mechanisms()

    def mechanisms(self) -> list[str]:
        """The names of `sasl_mechanisms`."""
        names = [each.strip().upper() for each in self.sasl_mechanisms.split(",") if each.strip()]
        for name in names:
            if name not in MECHANISMS:
                raise ValueError(f"sasl_mechanisms must be of {', '.join(MECHANISMS)}, not {name}")
        if not names:
            raise ValueError("sasl_mechanisms must not be empty")
        return list(dict.fromkeys(names))

    def super_principals(self) -> frozenset[str]:
        """The principals of `super_users`."""
        names = (each.strip() for each in self.super_users.split(SUPER_USERS_SEPARATOR))
        try:
            return frozenset(str(Principal.parse(name)) for name in names if name)
        except ValueError as error:
            raise ValueError(f"super_users {error}") from None
