"""The native Python client; it speaks RocketMQ's remoting protocol."""

from rockgate.sdk.client import Client
from rockgate.sdk.connection import LinkSettings
from rockgate.sdk.errors import (
    Closed,
    InvalidMessage,
    NoRoute,
    Refused,
    SdkError,
    SendFailed,
    TimedOut,
    Unreachable,
)
from rockgate.sdk.message import Message, SendResult, SendStatus
from rockgate.sdk.routes import Queue, Route

__all__ = [
    "Client",
    "Closed",
    "InvalidMessage",
    "LinkSettings",
    "Message",
    "NoRoute",
    "Queue",
    "Refused",
    "Route",
    "SdkError",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "TimedOut",
    "Unreachable",
]
