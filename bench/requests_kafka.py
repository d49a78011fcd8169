"""The largest requests of Kafka's wire, for `bench.requests`: every API at its worst legal size.

Three things make a request large: many different names, one name many times, and "all" where null
stands for it. What an API can have of these has a row each.
"""

from collections.abc import Callable, Iterator
from typing import Any

from bench.requests_world import GROUP_OF_ALL, TRANSACTION_OF_ALL, WIDE, Request, World, kafka_frame
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import create_topics as creating
from rockgate.protocol.kafka.messages import describe_configs as configs
from rockgate.protocol.kafka.messages import describe_groups as describing
from rockgate.protocol.kafka.messages import describe_transactions as transactions
from rockgate.protocol.kafka.messages import find_coordinator as finding
from rockgate.protocol.kafka.messages import list_groups as listing
from rockgate.protocol.kafka.messages import metadata
from rockgate.protocol.kafka.messages import offset_fetch as offsets

TOPIC_RESOURCE = 2
REPEATS = 100


def _row(
    key: ApiKey,
    what: str,
    make: Callable[[World], Any],
    *,
    version: int | None = None,
    is_changing: bool = False,
) -> Request:
    """A row whose request is one message."""
    shown = APIS[key].versions.max if version is None else version
    return Request(
        name=f"{''.join(word.title() for word in key.name.split('_'))} v{shown}, {what}",
        door="kafka",
        make=lambda world: [kafka_frame(key, make(world), version)],
        is_changing=is_changing,
    )


def _offset_fetch_all(world: World, times: int) -> offsets.OffsetFetchRequest:
    group = offsets.OffsetFetchRequestGroup(group_id=GROUP_OF_ALL, topics=None)
    return offsets.OffsetFetchRequest(groups=[group] * times)


def _reading() -> Iterator[Request]:
    """What changes nothing."""
    yield _row(ApiKey.METADATA, "all", lambda _: metadata.MetadataRequest(topics=None))
    yield _row(ApiKey.OFFSET_FETCH, "one group, all topics", lambda w: _offset_fetch_all(w, 1))
    yield _row(
        ApiKey.OFFSET_FETCH,
        f"one group {REPEATS} times, all topics",
        lambda w: _offset_fetch_all(w, REPEATS),
    )
    yield _row(
        ApiKey.FIND_COORDINATOR,
        "100,000 groups",
        lambda w: finding.FindCoordinatorRequest(coordinator_keys=w.many(w.groups)),
    )
    yield _row(
        ApiKey.DESCRIBE_GROUPS,
        "50,000 groups",
        lambda w: describing.DescribeGroupsRequest(groups=w.groups),
    )
    yield _row(ApiKey.LIST_GROUPS, "all", lambda _: listing.ListGroupsRequest())
    yield _row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        f"one id {REPEATS} times",
        lambda _: transactions.DescribeTransactionsRequest(
            transactional_ids=[TRANSACTION_OF_ALL] * REPEATS
        ),
    )
    yield _row(
        ApiKey.DESCRIBE_CONFIGS,
        "all topics",
        lambda w: configs.DescribeConfigsRequest(
            resources=[
                configs.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
                )
                for name in (*w.topics, WIDE)
            ]
        ),
    )


def _changing() -> Iterator[Request]:
    """What can be asked once."""
    yield _row(
        ApiKey.CREATE_TOPICS,
        "100,000 topics",
        lambda w: creating.CreateTopicsRequest(
            topics=[
                creating.CreatableTopic(
                    name=f"new-{number}", num_partitions=1, replication_factor=1
                )
                for number in range(w.size.items)
            ]
        ),
        is_changing=True,
    )


REQUESTS: tuple[Request, ...] = (*_reading(), *_changing())
