from __future__ import annotations

import pytest

from rockgate.gateway.transcode.names import is_visible, to_rocketmq, to_store


@pytest.mark.parametrize(
    ("store", "rocketmq"),
    [
        ("orders", "orders"),
        ("orders.paid", "orders|paid"),
        ("%RETRY%a.b", "%RETRY%a|b"),
        ("..", "||"),
        ("_x-1", "_x-1"),
    ],
)
def test_a_dot_is_a_bar_on_rocketmq_s_side_and_back(store: str, rocketmq: str) -> None:
    assert to_rocketmq(store) == rocketmq
    assert to_store(rocketmq) == store


def test_a_name_over_127_bytes_is_hidden_from_rocketmq_clients() -> None:
    assert is_visible("a" * 127)
    assert not is_visible("a" * 128)
