"""The errors of the command line's clients, and their exit statuses.

ClientError
├── Unreachable     no server responds there, or not in time: exit status 3
│   ├── NotKafka            something else than Kafka answers there
│   ├── NotAdmitted         it closed the connection at the first request: it may want a login
│   ├── TlsFailed           no TLS connection: a certificate was refused, or there is no TLS
│   └── BrokerUnreachable     no answer at RocketMQ's listener
│       └── NotRocketMQ     something else than RocketMQ answers there
├── NotServed       the server lacks an API, or every version of it that we know: status 1
├── Refused         the server answered with an error code of Kafka's: status 1
│   └── LoginRefused        the user name or the password is wrong, or the mechanism is not enabled
├── Declined        the server answered with a code of RocketMQ's: status 1
├── Missed          it does not exist, or was over before: status 1
└── Unusable        what the server sent, or what the user gave, cannot be used: status 1
"""

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.codes import response_name


class ClientError(Exception):
    """Root of what the client raises; its text is a sentence for people."""

    def __init__(self, text: str) -> None:
        # Reasons of others are quoted in it, with a full stop or without.
        super().__init__(f"{text.rstrip('. ')}.")


class Unreachable(ClientError):
    """No connection, a connection that ended, or no answer in time."""

    advice = (
        "Is a server running there?"
        " Set its address with --bootstrap-server or ROCKGATE_BOOTSTRAP_SERVER."
    )


class NotKafka(Unreachable):
    """A server responds, but does not speak Kafka's protocol."""

    advice = (
        "Set the Kafka port with --bootstrap-server or ROCKGATE_BOOTSTRAP_SERVER; if it requires"
        " TLS, set security.protocol in the file of --client-config."
    )


class NotAdmitted(Unreachable):
    """The server ended the connection at the first request after ApiVersions."""

    advice = (
        "If the server demands a login, give --username, or a file with --client-config or"
        " ROCKGATE_CLIENT_CONFIG."
    )


class TlsFailed(Unreachable):
    """No TLS connection; the text says what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.advice = ""
        if "Trust the authority" in text:
            self.advice = "Set ssl.truststore.location in the file of --client-config."


class BrokerUnreachable(Unreachable):
    """The same of RocketMQ's listener, which is found by another option."""

    advice = (
        "Is the RocketMQ listener running there? Set its address with --broker or ROCKGATE_BROKER."
    )


class NotRocketMQ(BrokerUnreachable):
    """A server responds, but does not speak RocketMQ's protocol."""

    advice = (
        "Set the RocketMQ port with --broker or ROCKGATE_BROKER; if it requires TLS, set"
        " rocketmq.tls.enable=true in the file of --client-config."
    )


class NotServed(ClientError):
    """The server does not offer what the command needs."""


class Unusable(ClientError):
    """A response or an input that cannot be used."""


class Refused(ClientError):
    """The server rejected a request: its code, and its message where it has one."""

    def __init__(self, code: int, message: str | None = None, *, what: str = "") -> None:
        self.code = code
        self.message = message
        self.what = what
        reason = (message or meaning(code)).rstrip(". ")
        text = reason if _is_named(what, reason) else f"{what}: {reason}"
        super().__init__(f"{text[:1].upper()}{text[1:]} ({name(code)})")

    def about(self, what: str) -> "Refused":
        """The same error, with its subject."""
        return Refused(self.code, self.message, what=what)

    def at(self, place: tuple[str, int]) -> "Refused":
        """The same error, about a partition of a topic."""
        return self.about(f"topic {place[0]} partition {place[1]}")


class LoginRefused(Refused):
    """The server did not let this client in."""


def _is_named(what: str, reason: str) -> bool:
    """Whether a server's message says itself what it is about, as in "Topic 'a' exists"."""
    kind, _, name = what.partition(" ")
    plain = reason.lower()
    is_quoted = bool(name) and plain.startswith(kind.lower()) and f"'{name}'" in reason
    return is_quoted or plain.startswith(what.lower())


class Declined(ClientError):
    """RocketMQ's listener rejected a request: its code, and its message where it has one."""

    def __init__(self, code: int, message: str | None = None, *, what: str = "") -> None:
        self.code = code
        self.message = message
        self.what = what
        reason = (message or "the server rejected the request").strip().rstrip(". ")
        text = f"{reason} ({response_name(code)})"
        # What it is about is an id, which is quoted as it is.
        super().__init__(f"{what}: {text}" if what else f"{text[:1].upper()}{text[1:]}")


class Missed(ClientError):
    """What was asked for does not exist, or was over before; nothing was changed."""

    def __init__(self, what: str, message: str) -> None:
        self.what = what
        self.message = message
        super().__init__(f"{what}: {message}")


def name(code: int) -> str:
    """The code's name as Kafka writes it; an undefined code stays a number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def meaning(code: int) -> str:
    """What the code means, in a few words."""
    try:
        return ErrorCode(code).meaning
    except ValueError:
        return "unknown error code"
