"""A principal: whom a connection or a request was authenticated as, in Kafka's form `User:name`."""

from __future__ import annotations

from typing import Final, NamedTuple

USER: Final = "User"
NAME_CHARS_MAX: Final = 255


class Principal(NamedTuple):
    """A type, which is `User` for all that log in here, and a name."""

    type: str
    name: str

    @classmethod
    def user(cls, name: str) -> Principal:
        """The principal of a user."""
        return cls(USER, name)

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Read `Type:name`, as tools and settings write it; ValueError otherwise."""
        type_, colon, name = text.partition(":")
        if not type_ or not colon or not name:
            raise ValueError(f"must be a principal such as User:alice, not {text!r}")
        return cls(type_, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal.user("ANONYMOUS")
"""A client that was not authenticated, on a listener that does not demand it."""
