"""The rows of the table of handlers that serve share groups."""

from __future__ import annotations

from rockgate.gateway.compose.kafka.services import Services
from rockgate.gateway.kafka.groups.consumer.assignment.topics import CatalogTopics
from rockgate.gateway.kafka.handlers import (
    share_acknowledge,
    share_fetch,
    share_group_heartbeat,
)
from rockgate.gateway.kafka.handlers.alter_share_group_offsets import AlterShareGroupOffsets
from rockgate.gateway.kafka.handlers.delete_share_group_offsets import DeleteShareGroupOffsets
from rockgate.gateway.kafka.handlers.describe_share_group_offsets import DescribeShareGroupOffsets
from rockgate.gateway.kafka.handlers.share_group_describe import ShareGroupDescribe
from rockgate.gateway.kafka.request.handler import Row, row
from rockgate.gateway.kafka.share.acknowledging import Acknowledging
from rockgate.gateway.kafka.share.fetching import ShareFetching
from rockgate.protocol.kafka import api


def _fetching(services: Services) -> ShareFetching:
    store, reading = services.store, services.reading
    return ShareFetching(
        records=services.shares.records,
        topics=store.topics,
        queues=store.queues,
        reader=reading.reader,
        search=reading.search,
        cold_reads=reading.cold_reads,
        clock=store.clock,
    )


def _acknowledging(services: Services, fetching: ShareFetching) -> Acknowledging:
    return Acknowledging(
        records=services.shares.records, fetching=fetching, permitted=services.permitted
    )


def _share_fetch(services: Services) -> share_fetch.ShareFetch:
    shares, fetching = services.shares, _fetching(services)
    return share_fetch.ShareFetch(
        is_share=lambda name: services.groups.holder(name) is shares.groups.kind,
        policy=shares.settings.policy,
        sessions=shares.sessions,
        fetching=fetching,
        acknowledging=_acknowledging(services, fetching),
        poll_registry=services.poll_registry,
        durability=services.durability,
        bytes_max=services.kafka_config.fetch_bytes_max,
        permitted=services.permitted,
    )


def _share_acknowledge(services: Services) -> share_acknowledge.ShareAcknowledge:
    shares = services.shares
    return share_acknowledge.ShareAcknowledge(
        policy=shares.settings.policy,
        sessions=shares.sessions,
        acknowledging=_acknowledging(services, _fetching(services)),
        durability=services.durability,
    )


SHARE_HANDLERS: tuple[Row[Services], ...] = (
    row(
        api.SHARE_GROUP_HEARTBEAT,
        lambda s: share_group_heartbeat.ShareGroupHeartbeat(
            s.shares.groups, s.durability, s.permitted
        ),
        size_max=share_group_heartbeat.REQUEST_BYTES_MAX,
    ),
    row(
        api.SHARE_GROUP_DESCRIBE,
        lambda s: ShareGroupDescribe(
            s.groups, s.shares.groups, CatalogTopics(s.catalog), s.permitted
        ),
    ),
    row(api.SHARE_FETCH, _share_fetch, size_max=share_fetch.REQUEST_BYTES_MAX),
    row(api.SHARE_ACKNOWLEDGE, _share_acknowledge, size_max=share_acknowledge.REQUEST_BYTES_MAX),
    row(
        api.DESCRIBE_SHARE_GROUP_OFFSETS,
        lambda s: DescribeShareGroupOffsets(
            groups=s.groups,
            records=s.shares.records,
            topics=s.store.topics,
            queues=s.store.queues,
            reader=s.reading.reader,
            leader_epoch=s.store.epochs.current,
            permitted=s.permitted,
        ),
    ),
    row(
        api.ALTER_SHARE_GROUP_OFFSETS,
        lambda s: AlterShareGroupOffsets(
            groups=s.groups,
            records=s.shares.records,
            topics=s.store.topics,
            queues=s.store.queues,
            durability=s.durability,
        ),
    ),
    row(
        api.DELETE_SHARE_GROUP_OFFSETS,
        lambda s: DeleteShareGroupOffsets(
            groups=s.groups,
            records=s.shares.records,
            topics=s.store.topics,
            durability=s.durability,
        ),
    ),
)
