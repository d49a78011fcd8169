"""Administration for programs without a loop."""

from __future__ import annotations

from collections.abc import Sequence

from rockgate.sdk.admin.admin import Admin
from rockgate.sdk.admin.brokers import BrokerAdmin
from rockgate.sdk.admin.calls import TIMEOUT_S
from rockgate.sdk.admin.groups import GroupAdmin
from rockgate.sdk.admin.messages import MessageAdmin
from rockgate.sdk.admin.offsets import OffsetAdmin
from rockgate.sdk.admin.topics import TopicAdmin
from rockgate.sdk.blocking.face import Face, Part, Waiting
from rockgate.sdk.credentials import Credentials, Tls


class BlockingTopicAdmin(Part[TopicAdmin]):
    """Administers topics."""

    create = Waiting(TopicAdmin.create)
    update = Waiting(TopicAdmin.update)
    delete = Waiting(TopicAdmin.delete)
    names = Waiting(TopicAdmin.names)
    route = Waiting(TopicAdmin.route)
    describe = Waiting(TopicAdmin.describe)
    bounds = Waiting(TopicAdmin.bounds)
    groups = Waiting(TopicAdmin.groups)


class BlockingGroupAdmin(Part[GroupAdmin]):
    """Administers groups."""

    create = Waiting(GroupAdmin.create)
    delete = Waiting(GroupAdmin.delete)
    names = Waiting(GroupAdmin.names)
    describe = Waiting(GroupAdmin.describe)
    consumers = Waiting(GroupAdmin.consumers)
    producers = Waiting(GroupAdmin.producers)
    running_info = Waiting(GroupAdmin.running_info)
    consume_directly = Waiting(GroupAdmin.consume_directly)
    lag = Waiting(GroupAdmin.lag)


class BlockingBrokerAdmin(Part[BrokerAdmin]):
    """Asks brokers about themselves."""

    all = Waiting(BrokerAdmin.all)
    runtime = Waiting(BrokerAdmin.runtime)
    config = Waiting(BrokerAdmin.config)


class BlockingMessageAdmin(Part[MessageAdmin]):
    """Looks messages up."""

    view = Waiting(MessageAdmin.view)
    by_key = Waiting(MessageAdmin.by_key)
    by_message_id = Waiting(MessageAdmin.by_message_id)


class BlockingOffsetAdmin(Part[OffsetAdmin]):
    """Administers offsets."""

    begin = Waiting(OffsetAdmin.begin)
    end = Waiting(OffsetAdmin.end)
    search = Waiting(OffsetAdmin.search)
    committed = Waiting(OffsetAdmin.committed)
    commit = Waiting(OffsetAdmin.commit)
    reset = Waiting(OffsetAdmin.reset)
    clone = Waiting(OffsetAdmin.clone)
    status = Waiting(OffsetAdmin.status)


class BlockingAdmin(Face):
    """An `Admin` whose calls wait."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        timeout_s: float = TIMEOUT_S,
        instance: str | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Parameters are those of `Admin`."""
        self._admin = Admin(
            name_servers,
            timeout_s=timeout_s,
            instance=instance,
            credentials=credentials,
            tls=tls,
        )
        super().__init__(self._admin)

    @property
    def topics(self) -> BlockingTopicAdmin:
        """Topics."""
        return BlockingTopicAdmin(self._admin.topics)

    @property
    def groups(self) -> BlockingGroupAdmin:
        """Groups of consumers and producers."""
        return BlockingGroupAdmin(self._admin.groups)

    @property
    def brokers(self) -> BlockingBrokerAdmin:
        """Brokers."""
        return BlockingBrokerAdmin(self._admin.brokers)

    @property
    def messages(self) -> BlockingMessageAdmin:
        """Messages, looked up."""
        return BlockingMessageAdmin(self._admin.messages)

    @property
    def offsets(self) -> BlockingOffsetAdmin:
        """Offsets of queues and groups."""
        return BlockingOffsetAdmin(self._admin.offsets)
