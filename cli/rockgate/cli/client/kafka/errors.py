"""Why a command did not get what it asked for.

ClientError
├── Unreachable     nobody answers there, or not in time: exit status 3
│   ├── NotKafka            something else than Kafka answers there
│   └── BrokerUnreachable     no answer at RocketMQ's listener
│       └── NotRocketMQ     something else than RocketMQ answers there
├── NotServed       the server lacks an API, or every version of it that we know: status 1
├── Refused         the server answered with an error code of Kafka's: status 1
├── Declined        the server answered with a code of RocketMQ's: status 1
├── Missed          it is not there, or was over before: status 1
└── Unusable        what the server sent, or what the user gave, cannot be used: status 1
"""

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.codes import response_name


class ClientError(Exception):
    """Root of what the client raises; its text is one clause for people."""


class Unreachable(ClientError):
    """No connection, a connection that ended, or no answer in time."""

    advice = "is a server running there? --bootstrap-server or ROCKGATE_BOOTSTRAP_SERVER says where"


class NotKafka(Unreachable):
    """Somebody is there, and does not speak Kafka's protocol."""

    advice = "--bootstrap-server or ROCKGATE_BOOTSTRAP_SERVER says which port is Kafka's"


class BrokerUnreachable(Unreachable):
    """The same of RocketMQ's listener, which is found by another option."""

    advice = "is RocketMQ's listener open there? --broker or ROCKGATE_BROKER says where it is"


class NotRocketMQ(BrokerUnreachable):
    """Somebody is there, and does not speak RocketMQ's protocol."""

    advice = "--broker or ROCKGATE_BROKER says which port is RocketMQ's"


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


class Declined(ClientError):
    """The no of RocketMQ's listener: its code, and its words where it has any."""

    def __init__(self, code: int, message: str | None = None, *, what: str = "") -> None:
        self.code = code
        self.message = message
        self.what = what
        reason = (message or "the server says no").strip().rstrip(". ")
        shown = f"{reason} ({response_name(code)})"
        super().__init__(f"{what}: {shown}" if what else shown)


class Missed(ClientError):
    """What was asked for is not there, or was over before; nothing was changed."""

    def __init__(self, what: str, message: str) -> None:
        self.what = what
        self.message = message
        super().__init__(f"{what}: {message}")


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
