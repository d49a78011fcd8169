from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from tests.gateway.remoting.client import properties

from rockgate.gateway.remoting.messages.recall import Handle, make_handle, read_handle


def test_a_handle_has_the_five_words_of_rocketmq_s() -> None:
    given = properties({"UNIQ_KEY": "7F01", "TIMER_DELIVER_MS": "1700000000000"})
    handle = make_handle("orders", "rockgate", given, 17, 5)
    assert handle is not None
    words = urlsafe_b64decode(handle).decode().split(" ")
    assert words == ["v1", "orders", "rockgate", "1700000000000", "7F01@17"]
    assert read_handle(handle) == Handle("orders", "7F01", 17)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"UNIQ_KEY": "u"},
        {"UNIQ_KEY": "u", "DELAY": "3"},
        {"UNIQ_KEY": "u", "DELAY": "3", "TIMER_DELAY_MS": "5"},
        {"TIMER_DELAY_MS": "5"},
        {"UNIQ_KEY": "u u", "TIMER_DELAY_MS": "5"},
    ],
)
def test_only_what_waits_for_a_time_has_a_handle(given: dict[str, str]) -> None:
    assert make_handle("orders", "rockgate", properties(given), 0, 0) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "ä",
        urlsafe_b64encode(b"v1 a b 1").decode(),
        urlsafe_b64encode(b"v2 a b 1 u@1").decode(),
        urlsafe_b64encode(b"v1 a b 1 u").decode(),
        urlsafe_b64encode(b"v1 a b 1 u@x").decode(),
        urlsafe_b64encode(b"v1 a b 1 u@" + b"9" * 19).decode(),
        urlsafe_b64encode(b"\xff\xff").decode(),
        "A" * 5000,
    ],
)
def test_what_is_no_handle_is_none(text: str) -> None:
    assert read_handle(text) is None
