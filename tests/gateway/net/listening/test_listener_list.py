import pytest

from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.listener_list import LISTENERS_MAX, read_listeners, read_map


def test_listeners_are_read_in_order_by_names_without_case() -> None:
    found = read_listeners("public://[::1]:1, Internal://host:2,,OPEN://:3", "listeners")
    assert list(found.items()) == [
        ("PUBLIC", Address("::1", 1)),
        ("INTERNAL", Address("host", 2)),
        ("OPEN", Address("0.0.0.0", 3)),
    ]
    assert read_listeners("", "listeners") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("host:1", "must be NAME://HOST:PORT"),
        ("A://host", "must be HOST:PORT"),
        ("A://off", "leave out what is off"),
        ("://h:1", "must name listeners"),
        ("a b://h:1", "must name listeners"),
        ("x" * 65 + "://h:1", "must name listeners"),
        ("A://h:1,a://h:2", "has the listener A twice"),
        (",".join(f"N{n}://h:{n}" for n in range(LISTENERS_MAX + 1)), "at most 16"),
    ],
)
def test_what_is_no_list_of_listeners_is_refused_with_its_setting(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        read_listeners(text, "listeners")
    assert str(refused.value).startswith("listeners ")


def test_a_map_has_a_value_for_each_name() -> None:
    assert read_map("a:SSL, b:enforcing+signature", "m") == {
        "A": "SSL",
        "B": "enforcing+signature",
    }
    for wrong in ("A", "A:", "A:1,a:2"):
        with pytest.raises(ValueError, match=r"^m "):
            read_map(wrong, "m")
