"""The native Python client; it speaks RocketMQ's remoting protocol.

Modules are imported lazily, on first access to one of their names: code that needs only a
connection, such as the command line and the server, does not load the producer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rockgate.sdk.admin.admin import Admin
    from rockgate.sdk.admin.values import GroupSettings, TopicSettings
    from rockgate.sdk.client.client import Client
    from rockgate.sdk.client.connection import LinkSettings
    from rockgate.sdk.client.replies import Reply
    from rockgate.sdk.client.routes import Route
    from rockgate.sdk.client_config import ClientConfig
    from rockgate.sdk.consumer.allocation import (
        Allocation,
        Averagely,
        ByMachineRoom,
        Configured,
        ConsistentHash,
        InCircles,
        Nearby,
    )
    from rockgate.sdk.consumer.broker_calls import PullStatus
    from rockgate.sdk.consumer.consumer import Consumer
    from rockgate.sdk.consumer.delivery.redelivery import DeadLetter, Retry
    from rockgate.sdk.consumer.pull.lite_pull import LitePullConsumer
    from rockgate.sdk.consumer.pull.lite_settings import LitePullSettings
    from rockgate.sdk.consumer.pull.membership import MembershipSettings
    from rockgate.sdk.consumer.pull.pull_consumer import PullConsumer, PullResult
    from rockgate.sdk.consumer.pull.pull_tasks import PullTasks
    from rockgate.sdk.consumer.settings import (
        ConsumerSettings,
        FlowLimits,
        Model,
        OffsetStore,
        Start,
    )
    from rockgate.sdk.credentials import Credentials
    from rockgate.sdk.errors import (
        Closed,
        ErrorCode,
        InvalidClientConfig,
        InvalidMessage,
        NoNameServer,
        NoRoute,
        NotRocketMQ,
        NotSupported,
        Overloaded,
        Refused,
        SdkError,
        SendFailed,
        TimedOut,
        TlsFailed,
        Unreachable,
    )
    from rockgate.sdk.hooks import (
        ConsumeHook,
        ConsumeKind,
        Consuming,
        Ended,
        RpcHook,
        SendHook,
        Sending,
        SendKind,
    )
    from rockgate.sdk.message import Message
    from rockgate.sdk.observe.statistics import ConsumerStatistics, TopicStatistics
    from rockgate.sdk.producer.producer import Producer
    from rockgate.sdk.producer.transaction import Rollback, Transaction
    from rockgate.sdk.received import Received
    from rockgate.sdk.results import Outcome, Queue, SendResult, SendStatus

_NAMES: Final = {
    "rockgate.sdk.admin.admin": ("Admin",),
    "rockgate.sdk.admin.values": ("GroupSettings", "TopicSettings"),
    "rockgate.sdk.client.client": ("Client",),
    "rockgate.sdk.client.connection": ("LinkSettings",),
    "rockgate.sdk.client.replies": ("Reply",),
    "rockgate.sdk.client.routes": ("Route",),
    "rockgate.sdk.client_config": ("ClientConfig",),
    "rockgate.sdk.consumer.allocation": (
        *("Allocation", "Averagely", "ByMachineRoom", "Configured", "ConsistentHash"),
        *("InCircles", "Nearby"),
    ),
    "rockgate.sdk.consumer.consumer": ("Consumer",),
    "rockgate.sdk.consumer.delivery.redelivery": ("DeadLetter", "Retry"),
    "rockgate.sdk.consumer.settings": (
        *("ConsumerSettings", "FlowLimits", "Model", "OffsetStore", "Start"),
    ),
    "rockgate.sdk.consumer.broker_calls": ("PullStatus",),
    "rockgate.sdk.consumer.pull.lite_pull": ("LitePullConsumer",),
    "rockgate.sdk.consumer.pull.lite_settings": ("LitePullSettings",),
    "rockgate.sdk.consumer.pull.pull_tasks": ("PullTasks",),
    "rockgate.sdk.consumer.pull.membership": ("MembershipSettings",),
    "rockgate.sdk.consumer.pull.pull_consumer": ("PullConsumer", "PullResult"),
    "rockgate.sdk.credentials": ("Credentials",),
    "rockgate.sdk.errors": (
        *("Closed", "ErrorCode", "InvalidClientConfig", "InvalidMessage", "NoNameServer"),
        *("NoRoute", "NotRocketMQ", "NotSupported", "Overloaded", "Refused", "SdkError"),
        *("SendFailed", "TimedOut", "TlsFailed", "Unreachable"),
    ),
    "rockgate.sdk.hooks": (
        *("ConsumeHook", "ConsumeKind", "Consuming", "Ended", "RpcHook", "SendHook", "SendKind"),
        "Sending",
    ),
    "rockgate.sdk.message": ("Message",),
    "rockgate.sdk.observe.statistics": ("ConsumerStatistics", "TopicStatistics"),
    "rockgate.sdk.producer.producer": ("Producer",),
    "rockgate.sdk.producer.transaction": ("Rollback", "Transaction"),
    "rockgate.sdk.received": ("Received",),
    "rockgate.sdk.results": ("Outcome", "Queue", "SendResult", "SendStatus"),
}
"""Where each public name is defined."""
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from the module that defines it."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Admin",
    "Allocation",
    "Averagely",
    "ByMachineRoom",
    "Client",
    "ClientConfig",
    "Closed",
    "Configured",
    "ConsistentHash",
    "ConsumeHook",
    "ConsumeKind",
    "Consumer",
    "ConsumerSettings",
    "ConsumerStatistics",
    "Consuming",
    "Credentials",
    "DeadLetter",
    "Ended",
    "ErrorCode",
    "FlowLimits",
    "GroupSettings",
    "InCircles",
    "InvalidClientConfig",
    "InvalidMessage",
    "LinkSettings",
    "LitePullConsumer",
    "LitePullSettings",
    "MembershipSettings",
    "Message",
    "Model",
    "Nearby",
    "NoNameServer",
    "NoRoute",
    "NotRocketMQ",
    "NotSupported",
    "OffsetStore",
    "Outcome",
    "Overloaded",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PullTasks",
    "Queue",
    "Received",
    "Refused",
    "Reply",
    "Retry",
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
    "Start",
    "TimedOut",
    "TlsFailed",
    "TopicSettings",
    "TopicStatistics",
    "Transaction",
    "Unreachable",
]
