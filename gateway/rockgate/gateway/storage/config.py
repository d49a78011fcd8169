"""Settings of overload protection, for both protocols."""

from dataclasses import dataclass, field

_COUNT = {"minimum": 1, "maximum": 10_000_000}
_WAIT = {"minimum": 1, "maximum": 600_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadConfig:
    """Overload: how many requests may be in flight, how long they may wait, and slow groups."""

    enabled: bool = True
    """Protect the server from overload; RocketMQ's `brokerFastFailureEnable`."""
    busy_ms_min: int = field(default=1_000, metadata=_WAIT)
    """How long appends wait for the disk before RocketMQ sends are rejected at once; RocketMQ's
    `osPageCacheBusyTimeOutMills`."""
    send_in_flight_max: int = field(default=10_000, metadata=_COUNT)
    """Maximum number of RocketMQ sends in flight; `sendThreadPoolQueueCapacity`."""
    send_wait_ms_max: int = field(default=200, metadata=_WAIT)
    """Maximum time a RocketMQ send waits before it is started; `waitTimeMillsInSendQueue`."""
    pull_in_flight_max: int = field(default=100_000, metadata=_COUNT)
    """Maximum number of RocketMQ pulls and pops in flight, suspended ones included;
    `pullThreadPoolQueueCapacity`."""
    pull_wait_ms_max: int = field(default=5_000, metadata=_WAIT)
    """Maximum time a RocketMQ pull or pop waits before it is started; `waitTimeMillsInPullQueue`.
    """
    heartbeat_in_flight_max: int = field(default=50_000, metadata=_COUNT)
    """Maximum number of RocketMQ heartbeats in flight; `heartbeatThreadPoolQueueCapacity`."""
    heartbeat_wait_ms_max: int = field(default=31_000, metadata=_WAIT)
    """Maximum time a RocketMQ heartbeat waits before it is started;
    `waitTimeMillsInHeartbeatQueue`."""
    transaction_in_flight_max: int = field(default=100_000, metadata=_COUNT)
    """Maximum number of commits and rollbacks of half messages in flight;
    `endTransactionPoolQueueCapacity`."""
    transaction_wait_ms_max: int = field(default=3_000, metadata=_WAIT)
    """Maximum time a commit or rollback of a half message waits before it is started;
    `waitTimeMillsInTransactionQueue`."""
    ack_in_flight_max: int = field(default=100_000, metadata=_COUNT)
    """Maximum number of RocketMQ acknowledgements in flight; `ackThreadPoolQueueCapacity`."""
    ack_wait_ms_max: int = field(default=3_000, metadata=_WAIT)
    """Maximum time a RocketMQ acknowledgement waits before it is started;
    `waitTimeMillsInAckQueue`."""
    admin_in_flight_max: int = field(default=10_000, metadata=_COUNT)
    """Maximum number of other RocketMQ requests in flight; `adminBrokerThreadPoolQueueCapacity`."""
    admin_wait_ms_max: int = field(default=5_000, metadata=_WAIT)
    """Maximum time another RocketMQ request waits before it is started;
    `waitTimeMillsInAdminBrokerQueue`."""
    slow_groups: bool = False
    """Disable consumption of RocketMQ groups that are too far behind;
    `disableConsumeIfConsumerReadSlowly`."""
    slow_group_bytes_max: int = field(default=16 << 30, metadata={"minimum": 1, "maximum": 2**62})
    """With `slow_groups`: how far behind a group may be in a queue, in bytes of the log;
    `consumerFallbehindThreshold`."""
