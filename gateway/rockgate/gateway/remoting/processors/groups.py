"""Groups: 200, 225 set, 201 all, 207 delete, 352 one; 343, 345, 353 what it reads; 308.

Behaviour
- A group need not be set before it consumes: it has RocketMQ's defaults.
- 207 with cleanOffset also deletes the group's progress; a group with members keeps it.
- 353 forbids a group to read a topic, or allows it again: pulls get NO_PERMISSION.
- 308 has for each queue the lowest offset of the groups that read it, or the largest number where
  the group that is compared with them is behind all of them.

Departs from RocketMQ
- 308 leaves the groups that are not to count as they are; RocketMQ deletes their offsets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain, islice

import msgspec

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.forbidden import ForbiddenReads
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS, joined, keyed
from rockgate.gateway.remoting.server.names import check_group as check_name
from rockgate.gateway.remoting.server.names import check_new_group, check_topic, group_of
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import (
    DataVersion,
    GroupConfigList,
    SubscriptionAnswer,
    SubscriptionGroupConfig,
)
from rockgate.protocol.remoting.bodies.queues import CorrectionOffsets, GroupForbidden
from rockgate.protocol.remoting.bodies.topics import TopicList
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.clients import DeleteGroupHeader
from rockgate.protocol.remoting.headers.offsets import (
    AllGroupsHeader,
    CorrectionOffsetHeader,
    GroupForbiddenHeader,
    GroupHeader,
    SubscriptionByConsumerHeader,
)
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.store.api.progress import Progress, check_group
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup

SETTINGS_BYTES_MAX = 16_384
OFFSET_MAX = 2**63 - 1
LIST_BYTES_MAX = 1 << 20
"""Maximum size of one list: some two thousand groups."""
"""Maximum size of one group's settings; RocketMQ's own have about 500."""
SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)
"""The groups that RocketMQ's broker has when it is new."""


class GroupRequests:
    """Processors of group requests."""

    def __init__(
        self,
        *,
        settings: GroupSettings,
        clients: Clients,
        progress: Progress,
        topics: TopicLookup,
        queues: Queues,
        durability: Durability,
        forget: Callable[[str], None],
        forbidden: ForbiddenReads,
    ) -> None:
        self._forget = forget
        self._forbidden = forbidden
        self._queues = queues
        self._settings = settings
        self._clients = clients
        self._progress = progress
        self._topics = topics
        self._durability = durability

    def update(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """200: set the settings of a group."""
        what = "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"
        settings = javajson.decode(
            command.body, SubscriptionGroupConfig, what, size_max=SETTINGS_BYTES_MAX
        )
        _check_settings(settings)
        self._settings.set(settings)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def update_many(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """225: set the settings of groups; all are checked before the first is changed."""
        what = "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST"
        asked = javajson.decode(command.body, GroupConfigList, what, size_max=LIST_BYTES_MAX)
        for each in asked.group_config_list:
            _check_settings(each)
        return self._update_many(asked.group_config_list)

    async def _update_many(self, groups: Sequence[SubscriptionGroupConfig]) -> Reply:
        share = TimeSlice(TURN_SECONDS)
        for each in groups:
            self._settings.set(each)
            if share.is_over():
                await asyncio.sleep(0)
                share = TimeSlice(TURN_SECONDS)
        answer = self._durability.after_changes(Command(ResponseCode.SUCCESS))
        return answer if isinstance(answer, Command | list) else await answer

    def subscription(self, command: Command, caller: Caller) -> Reply:
        """345: the subscription of a group to a topic."""
        asked = headers.read(command, SubscriptionByConsumerHeader)
        members = self._clients.consumer_group(group_of(asked.group))
        data = None if members is None else members.subscriptions.get(asked.topic)
        answer = SubscriptionAnswer(group=asked.group, topic=asked.topic, subscription_data=data)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(answer))

    def all(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """201: every group, whether set, connected or known by its progress; or a page of them."""
        return self._all(headers.read(command, AllGroupsHeader))

    async def _all(self, asked: AllGroupsHeader) -> Reply:
        connected = (group.name for group in self._clients.consumer_groups())
        known = chain(SYSTEM_GROUPS, connected, self._progress.groups(), self._settings.names())
        found = dict.fromkeys(known)
        await asyncio.sleep(0)
        chosen: Iterable[str] = found
        if asked.max_group_num > 0:
            first = max(0, asked.group_seq)
            chosen = islice(found, first, first + asked.max_group_num)
        body = await joined(
            b'{"dataVersion":%b,"forbiddenTable":%b,"subscriptionGroupTable":{'
            % (javajson.encode(DataVersion()), javajson.encode(self._forbidden.by_group())),
            map(self._row, chosen),
            b"}}",
            instead="request pages (maxGroupNum), or group by group (GET_SUBSCRIPTIONGROUP_CONFIG)",
        )
        return Command(ResponseCode.SUCCESS, {"totalGroupNum": str(len(found))}, body)

    def _row(self, group: str) -> bytes:
        name = names.to_rocketmq(group)
        settings = self._settings.of(group)
        return keyed(name, msgspec.structs.replace(settings, group_name=name))

    def one(self, command: Command, caller: Caller) -> Reply:
        """352: one group."""
        group = headers.read(command, GroupHeader).group
        settings = msgspec.structs.replace(self._settings.of(group_of(group)), group_name=group)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(settings))

    def delete(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """207: delete a group."""
        asked = headers.read(command, DeleteGroupHeader)
        group = group_of(asked.group_name)
        self._settings.remove(group)
        self._forbidden.forget(asked.group_name)
        if asked.clean_offset and self._clients.consumer_group(group) is None:
            self._progress.delete_groups([group])
            self._forget(group)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def topics_of(self, command: Command, caller: Caller) -> Reply:
        """343: the topics that a group reads."""
        group = group_of(headers.read(command, GroupHeader).group)
        members = self._clients.consumer_group(group)
        found = set(members.subscriptions) if members is not None else set()
        for topic_id in self._progress.topics_of(group):
            topic = self._topics.find_id(topic_id)
            if topic is not None:
                found.add(names.to_rocketmq(topic.name))
        return Command(
            ResponseCode.SUCCESS, body=javajson.encode(TopicList(topic_list=sorted(found)))
        )

    def forbid(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """353: forbid or allow a group to read a topic."""
        asked = headers.read(command, GroupForbiddenHeader)
        check_name(asked.group)
        check_topic(asked.topic)
        if asked.readable is not None:
            self._forbidden.set(asked.topic, asked.group, is_forbidden=not asked.readable)
        answer = GroupForbidden(
            group=asked.group,
            topic=asked.topic,
            readable=not self._forbidden.has((asked.topic, asked.group)),
        )
        return self._durability.after_changes(
            Command(ResponseCode.SUCCESS, body=javajson.encode(answer))
        )

    def correction(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """308: the lowest offset of a topic's groups, queue by queue."""
        asked = headers.read(command, CorrectionOffsetHeader)
        topic = self._topics.find(names.to_store(asked.topic))
        left_out = {names.to_store(each) for each in (asked.filter_groups or "").split(",")}
        return self._correction(topic, left_out, group_of(asked.compare_group))

    async def _correction(self, topic: Topic | None, left_out: set[str], compared: str) -> Reply:
        lowest: dict[int, int] = {}
        queues = [] if topic is None else list(self._queues.of(topic.id))
        share = TimeSlice(TURN_SECONDS)
        for group in list(self._progress.groups()) if queues else ():
            for queue in queues if group not in left_out else ():
                offset = self._offset(group, queue)
                if offset is not None:
                    lowest[queue.queue_id] = min(offset, lowest.get(queue.queue_id, offset))
                if share.is_over():
                    await asyncio.sleep(0)
                    share = TimeSlice(TURN_SECONDS)
        for queue in queues:
            offset = self._offset(compared, queue)
            if offset is not None and lowest.get(queue.queue_id, offset) > offset:
                lowest[queue.queue_id] = OFFSET_MAX
        answer = CorrectionOffsets(correction_offsets=Keyed(lowest))
        return Command(ResponseCode.SUCCESS, body=javajson.encode(answer))

    def _offset(self, group: str, queue: Queue) -> int | None:
        """The offset of a group in a queue, unless it is below what is stored."""
        found = self._progress.fetch(group, queue.topic_id, queue.queue_id)
        return None if found is None or found.offset < queue.log_start else found.offset


def _check_settings(settings: SubscriptionGroupConfig) -> None:
    """Reject invalid settings, and convert the group's name to the store's."""
    if not settings.group_name:
        raise Refused(ResponseCode.INVALID_PARAMETER, "Group name is empty.")
    check_new_group(settings.group_name)
    settings.group_name = names.to_store(settings.group_name)
    check_group(settings.group_name)
    if len(javajson.encode(settings)) > SETTINGS_BYTES_MAX:
        raise Refused(
            ResponseCode.INVALID_PARAMETER,
            f"Settings of group '{settings.group_name}' exceed {SETTINGS_BYTES_MAX:,} bytes.",
        )
