"""The native Python client; it speaks RocketMQ's remoting protocol."""

from rockgate.protocol.remoting.message import Message as Received
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.connection import LinkSettings
from rockgate.sdk.client.replies import Reply
from rockgate.sdk.client.routes import Route
from rockgate.sdk.errors import (
    Closed,
    ErrorCode,
    InvalidMessage,
    NoNameServer,
    NoRoute,
    NotSupported,
    Overloaded,
    Refused,
    SdkError,
    SendFailed,
    TimedOut,
    Unreachable,
)
from rockgate.sdk.hooks import Ended, RpcHook, SendHook, Sending, SendKind
from rockgate.sdk.message import Message
from rockgate.sdk.producer.producer import Producer
from rockgate.sdk.producer.transaction import Rollback, Transaction
from rockgate.sdk.results import Outcome, Queue, SendResult, SendStatus

__all__ = [
    "Client",
    "Closed",
    "Ended",
    "ErrorCode",
    "InvalidMessage",
    "LinkSettings",
    "Message",
    "NoNameServer",
    "NoRoute",
    "NotSupported",
    "Outcome",
    "Overloaded",
    "Producer",
    "Queue",
    "Received",
    "Refused",
    "Reply",
    "Rollback",
    "Route",
    "RpcHook",
    "SdkError",
    "SendFailed",
    "SendHook",
    "SendKind",
    "SendResult",
    "SendStatus",
    "Sending",
    "TimedOut",
    "Transaction",
    "Unreachable",
]
