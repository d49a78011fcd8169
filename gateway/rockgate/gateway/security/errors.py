"""Why users, grants and secrets cannot be changed or used.

SecurityError
├── TooManyRecords       the maximum of users, grants or tokens has been reached
├── InvalidUser          a name that no user may have
├── SecretUnavailable    the key that seals secrets is missing or wrong
├── TokenNotFound        no delegation token has this HMAC
├── TokenExpired         it is too late to renew a delegation token
└── NotTokenOwner        neither owner nor renewer of the delegation token
"""

from __future__ import annotations


class SecurityError(Exception):
    """Root of the errors of this package. The text is a sentence without secrets."""


class TooManyRecords(SecurityError):
    """The maximum number of records has been reached."""

    def __init__(self, count_max: int, what: str) -> None:
        super().__init__(f"The maximum of {count_max:,} {what} has been reached.")


class InvalidUser(SecurityError):
    """A name that no user may have."""


class SecretUnavailable(SecurityError):
    """A secret cannot be sealed or opened."""


class TokenNotFound(SecurityError):
    """No delegation token has the HMAC."""

    def __init__(self) -> None:
        super().__init__("No delegation token has this HMAC.")


class TokenExpired(SecurityError):
    """The delegation token has expired."""

    def __init__(self) -> None:
        super().__init__("The delegation token has expired.")


class NotTokenOwner(SecurityError):
    """The client is neither owner nor renewer of the delegation token."""

    def __init__(self) -> None:
        super().__init__("Only owner and renewers may change a delegation token.")
