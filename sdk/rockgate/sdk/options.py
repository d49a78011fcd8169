"""The optional arguments of producers and consumers, as the blocking classes pass them on.

A type checker and an editor know these by name, as if the blocking classes listed them themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from rockgate.sdk.client.client import Client
    from rockgate.sdk.consumer.member import OnQueues
    from rockgate.sdk.consumer.settings import ConsumerSettings
    from rockgate.sdk.credentials import Credentials, Tls
    from rockgate.sdk.hooks import ConsumeHook, SendHook


class ProducerOptions(TypedDict, total=False):
    """What `Producer` takes besides name servers, group and checker."""

    namespace: str
    instance: str | None
    client: Client | None
    credentials: Credentials | None
    tls: Tls | None
    hooks: Sequence[SendHook]
    tracer_provider: TracerProvider | None
    trace: bool | str
    timeout_s: float
    retry_count: int
    retry_not_ok: bool
    avoid_slow: bool
    body_size_max: int
    compress_over: int


class ConsumerOptions(TypedDict, total=False):
    """What `Consumer` takes besides name servers, group and topics."""

    settings: ConsumerSettings | None
    namespace: str
    instance: str | None
    client: Client | None
    credentials: Credentials | None
    tls: Tls | None
    on_assigned: OnQueues | None
    on_revoked: OnQueues | None
    hooks: Sequence[ConsumeHook]
    tracer_provider: TracerProvider | None
    trace: bool | str
