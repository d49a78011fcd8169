"""The native Python client; it speaks RocketMQ's remoting protocol."""

from rockgate.protocol.remoting.message import Message as Received
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
from rockgate.sdk.producer import Producer
from rockgate.sdk.replies import Reply
from rockgate.sdk.routes import Queue, Route
from rockgate.sdk.transaction import Outcome, Rollback, Transaction

__all__ = [
    "Client",
    "Closed",
    "InvalidMessage",
    "LinkSettings",
    "Message",
    "NoRoute",
    "Outcome",
    "Producer",
    "Queue",
    "Received",
    "Refused",
    "Reply",
    "Rollback",
    "Route",
    "SdkError",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "TimedOut",
    "Transaction",
    "Unreachable",
]
