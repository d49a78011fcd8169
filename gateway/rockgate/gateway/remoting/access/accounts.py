"""What these requests use of users and grants. Composition has one for the server's own."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from rockgate.gateway.security.grants import Grant
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.scram import ScramMechanism

SIGNATURE: Final = "SIGNATURE"
CREDENTIALS: Final = (*(mechanism.sasl_name for mechanism in ScramMechanism), SIGNATURE)


class Account(NamedTuple):
    """A user without credentials."""

    is_super: bool
    is_enabled: bool
    credentials: tuple[str, ...]
    """What it can log in with: SASL names of SCRAM, and SIGNATURE."""


class Accounts(Protocol):
    """The users. What cannot be done is a SecurityError with a sentence for the client."""

    def find(self, name: str, /) -> Account | None:
        """Return a user; None if there is none."""

    def names(self) -> Iterable[str]:
        """The names of all users; valid until the next change."""

    def is_super(self, principal: Principal, /) -> bool:
        """Whether a principal may do everything, as a user or by the settings."""

    def put(
        self,
        name: str,
        /,
        *,
        password: str | None,
        is_super: bool,
        is_enabled: bool,
        credentials: Collection[str] | None = None,
    ) -> Awaitable[None]:
        """Create a user, or change one; a password of None stays as it is.

        The password is for those of `credentials`, and the others stay; None is all of them.
        """

    def remove(self, name: str, /) -> None:
        """Remove a user."""


class Grants(Protocol):
    """The grants of everyone."""

    def __iter__(self) -> Iterator[Grant]:
        """All grants; valid until the next change."""

    def add(self, grants: Iterable[Grant], /) -> None:
        """Add grants, all or none."""

    def remove(self, grants: Iterable[Grant], /) -> None:
        """Remove grants, all or none."""
