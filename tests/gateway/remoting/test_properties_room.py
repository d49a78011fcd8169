"""A message with the longest properties that a send takes goes every way that there is."""

from __future__ import annotations

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.remoting.messages.test_retry_requests import pulled, send_back
from tests.waiting import wait_until

from rockgate.gateway.transcode.dictionary import SIZE_MAX
from rockgate.protocol.remoting.codes import ResponseCode


def filled(size: int, **more: str) -> dict[str, str]:
    """Properties of that many bytes in all."""
    used = sum(len(name) + len(value) + 2 for name, value in more.items())
    return {**more, "filling": "f" * (size - used - len("filling") - 2)}


def named(kind: str) -> str:
    return kind + "-" * (100 - len(kind))


def tries(broker: Client, topic: str) -> list[int]:
    return [each.reconsume_times for each in pulled(broker, topic)]


@pytest.mark.parametrize("size", [SIZE_MAX + 1, 32_590, 32_599])
def test_what_leaves_no_room_is_refused_at_the_send(broker: Client, size: int) -> None:
    for more in ({}, {"DELAY": "1"}):
        refused = broker.publish("room", properties=filled(size, **more))
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
    assert broker.publish("room", properties=filled(SIZE_MAX)).code == 0


@pytest.mark.parametrize("topic", ["d", named("delayed")])
def test_a_delayed_one_is_delivered_given_back_and_ends_as_a_dead_letter(
    broker: Client, topic: str
) -> None:
    group = named("room-" + str(len(topic)))
    sent = broker.publish(topic, b"later", properties=filled(SIZE_MAX, DELAY="1"))
    assert sent.code == 0
    wait_until(lambda: pulled(broker, topic) != [], "it is delivered")
    [message] = pulled(broker, topic)
    retry = "%RETRY%" + group
    for times in range(1, 4):
        assert send_back(broker, message, group, maxReconsumeTimes=3) == 0
        wait_until(lambda: tries(broker, retry)[-1:] == [times], "the retry")  # noqa: B023  # at once
        message = pulled(broker, retry)[-1]
    assert send_back(broker, message, group, maxReconsumeTimes=3) == 0
    [dead] = pulled(broker, "%DLQ%" + group)
    assert (dead.body, len(dead.properties["filling"]) > SIZE_MAX - 100) == (b"later", True)
