"""What no broker would take is refused before it is sent: docs/reference/sdk.md, "A message"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rockgate.protocol.entry import parse_properties
from rockgate.sdk import Received, SdkError
from rockgate.sdk.errors import InvalidMessage
from rockgate.sdk.message import RESERVED, Message, check, check_group, pack

NOW_MS = 1_700_000_000_000


def packed(**more: Any) -> dict[str, str]:
    message = Message("t", b"x", **more)
    check(message, 100)
    return parse_properties(pack(message, "id", NOW_MS).encode())


@pytest.mark.row("PRD-2")
@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Message("", b"x"), "Topic name is blank"),
        (Message(" ", b"x"), "Topic name is blank"),
        (Message("a b", b"x"), "contains characters other than"),
        (Message("t" * 128, b"x"), "Topic name is 128 characters; the maximum is 127"),
        (Message("t", b""), "Body is empty"),
        (Message("t", b"x" * 101), "Body is 101 bytes; the maximum is 100"),
        (Message("t", "text"), "Body must be bytes, not str"),  # type: ignore[arg-type]  # on purpose
        (Message("t", b"x", flag=2**31), "not a 32-bit integer"),
        (Message("t", b"x", keys="o-1"), "Keys must be a sequence of strings"),
        (Message("t", b"x", keys=["a b"]), "Key 'a b' is empty or contains a space"),
        (Message("t", b"x", tag="a||b"), "is blank or contains"),
        (Message("t", b"x", properties={"DELAY": "3"}), "Property DELAY is reserved"),
    ],
)
def test_what_no_broker_would_take_is_refused(message: Message, why: str) -> None:
    with pytest.raises(InvalidMessage, match=why):
        check(message, 100)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"properties": {"a\x01": "b"}}, "contains a separator"),
        ({"properties": {"a": "b\x02"}}, "contains a separator"),
        ({"properties": {"a": "b" * 32_768}}, "the maximum is 32,767"),
        ({"properties": {"a": "\udc80"}}, "invalid Unicode"),
        ({"delay": 0}, "must be 1 to 18, not 0"),
        ({"delay": 19}, "must be 1 to 18, not 19"),
        ({"delay": True}, "must be 1 to 18, not True"),
        ({"delay": timedelta(seconds=-1)}, "is negative"),
        ({"delay": datetime(2030, 1, 1)}, "has no time zone"),
    ],
)
def test_settings_that_cannot_travel_are_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidMessage, match=why):
        packed(**more)


def test_tag_keys_and_properties_travel_as_rocketmq_reads_them() -> None:
    assert packed(tag="paid", keys=["o-1", "o-2"], properties={"color": "blue"}) == {
        "TAGS": "paid",
        "KEYS": "o-1 o-2",
        "color": "blue",
        "UNIQ_KEY": "id",
        "WAIT": "true",
    }


@pytest.mark.parametrize(
    ("delay", "name", "value"),
    [
        (3, "DELAY", "3"),
        (timedelta(minutes=30), "TIMER_DELIVER_MS", str(NOW_MS + 1_800_000)),
        (datetime(2030, 1, 1, tzinfo=UTC), "TIMER_DELIVER_MS", "1893456000000"),
    ],
)
def test_a_delay_is_a_level_a_time_span_or_a_time(delay: Any, name: str, value: str) -> None:
    assert packed(delay=delay)[name] == value


def test_every_property_with_a_meaning_is_reserved() -> None:
    assert {"KEYS", "TAGS", "UNIQ_KEY", "TRAN_MSG", "TIMER_DELIVER_MS"} <= RESERVED
    assert " " not in RESERVED


@pytest.mark.parametrize("group", ["", "a b", "g" * 256])
def test_a_group_without_a_proper_name_is_refused(group: str) -> None:
    with pytest.raises(InvalidMessage, match="Group name"):
        check_group(group)


@pytest.mark.parametrize("name", ["orders.paid", ".", "a.b|c"])
def test_a_dot_is_refused_with_the_name_to_use(name: str) -> None:
    there = name.replace(".", "|")
    with pytest.raises(InvalidMessage, match=re.escape(f"Its RocketMQ name is '{there}'")):
        check(Message(name, b"x"), 100)
    with pytest.raises(InvalidMessage, match=r"Group name .* contains a dot"):
        check_group(name)


def test_what_was_received_has_tag_and_keys() -> None:
    message = Received.of("t", b"x", properties={"TAGS": "paid", "KEYS": "o-1  o-2"})
    assert (message.tag, message.keys) == ("paid", ("o-1", "o-2"))
    message = Received.of("t", b"x")
    assert (message.tag, message.keys) == (None, ())


async def test_a_message_that_lies_nowhere_cannot_be_settled() -> None:
    message = Received.of("t", b"x", properties={"a": "b"}, flag=3)
    assert (message.topic, message.body, message.properties, message.flag) == (
        *("t", b"x", {"a": "b"}),
        3,
    )
    with pytest.raises(SdkError, match="Only messages of a group's consumer"):
        await message.ack()
    with pytest.raises(SdkError, match="Only messages of a group's consumer"):
        await message.retry()
