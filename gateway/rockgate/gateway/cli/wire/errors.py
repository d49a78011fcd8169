"""Why a command did not get what it asked for.

ClientError
├── Unreachable     nobody answers there, or not in time: exit status 3
├── NotServed       the server lacks an API, or every version of it that we know: status 1
├── Refused         the server answered with an error code: status 1
└── Unusable        what the server sent, or what the user gave, cannot be used: status 1
"""

from rockgate.protocol.kafka.errors import ErrorCode


class ClientError(Exception):
    """Root of what the client raises; its text is one clause for people."""


class Unreachable(ClientError):
    """No connection, a connection that ended, or no answer in time."""


class NotServed(ClientError):
    """The server does not offer what the command needs."""


class Unusable(ClientError):
    """An answer or an input that makes no sense here."""


class Refused(ClientError):
    """The server's own no: its code, and its words where it has any."""

    def __init__(self, code: int, message: str | None = None, *, what: str = "") -> None:
        self.code = code
        self.message = message
        self.what = what
        reason = (message or meaning(code)).rstrip(". ")
        super().__init__(f"{what}: {reason} ({name(code)})" if what else f"{reason} ({name(code)})")

    def about(self, what: str) -> "Refused":
        """The same no, with what it is about."""
        return Refused(self.code, self.message, what=what)


def name(code: int) -> str:
    """The code's name as Kafka writes it; a number that nobody defined is shown as it is."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def meaning(code: int) -> str:
    """What the code means, in a few words."""
    try:
        return ErrorCode(code).meaning
    except ValueError:
        return "the server answered with an error this client does not know"
