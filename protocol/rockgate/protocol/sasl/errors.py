"""Why an authentication ends without a user."""

from __future__ import annotations


class SaslError(Exception):
    """The exchange has failed. The text is for the server's log, and never sent to the client."""


class MalformedToken(SaslError):
    """A client's message is not one that the mechanism allows here."""


class WrongCredentials(SaslError):
    """The client does not know the password; or there is no such user, which must look the same."""
