"""What a topic's config means for the store."""

import pytest

from rockgate.gateway.topics.policy import queue_policy
from rockgate.store.api.topics import QueuePolicy


def test_a_config_that_says_nothing_leaves_all_to_the_store() -> None:
    assert queue_policy({}) == queue_policy({"segment.ms": "5"}) == QueuePolicy()


def test_limits_are_numbers() -> None:
    policy = queue_policy({"retention.ms": "9", "retention.bytes": "0"})
    assert (policy.retention_ms, policy.retention_bytes) == (9, 0)


@pytest.mark.parametrize("text", ["-1", "-2", "-9223372036854775808"])
def test_a_limit_below_zero_is_none(text: str) -> None:
    policy = queue_policy({"retention.ms": text, "retention.bytes": text})
    assert (policy.retention_ms, policy.retention_bytes) == (-1, -1)


@pytest.mark.parametrize("text", ["", "soon", "1.5", "1h"])
def test_a_limit_that_is_no_number_is_the_stores(text: str) -> None:
    assert queue_policy({"retention.ms": text, "retention.bytes": text}) == QueuePolicy()


@pytest.mark.parametrize(
    ("policy", "expires"),
    [
        ("delete", True),
        ("compact", False),
        ("compact,delete", True),
        ("delete, compact", True),
        ("", False),
    ],
)
def test_what_is_only_compacted_never_expires(policy: str, expires: bool) -> None:
    assert queue_policy({"cleanup.policy": policy}).expires is expires


@pytest.mark.parametrize(("text", "is_sync"), [("1", True), ("2", False), ("", False)])
def test_a_topic_is_sync_if_every_message_is_flushed(text: str, is_sync: bool) -> None:
    assert queue_policy({"flush.messages": text}).is_sync is is_sync
