import pytest

from rockgate.gateway.net.address import CLOSED, Address, is_this_machine


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9092", "127.0.0.1", 9092),
        (" localhost:0 ", "localhost", 0),
        ("[::1]:65535", "::1", 65535),
        ("kafka-0.example:19092", "kafka-0.example", 19092),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text.strip()


@pytest.mark.parametrize("text", ["off", "OFF", " off "])
def test_off_is_the_closed_listener(text: str) -> None:
    assert Address.parse(text) is CLOSED
    assert str(CLOSED) == "off"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9092", "must be HOST:PORT"),
        (":9092", "must be HOST:PORT"),
        ("", "must be HOST:PORT"),
        ("localhost:", "must be HOST:PORT"),
        ("localhost:kafka", "must be HOST:PORT"),
        ("localhost:-1", "must be HOST:PORT"),
        ("localhost:٣", "must be HOST:PORT"),
        ("localhost:65536", "must have a port from 0 to 65535"),
        ("localhost:" + "9" * 5000, "must have a port from 0 to 65535"),
        ("::1:9092", "IPv6 host in brackets"),
        ("a b:9092", "host name"),
        ("http://x:9092", "brackets"),
        ("x" * 300 + ":1", "host name"),
    ],
)
def test_anything_else_is_refused_with_what_is_wanted(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Address.parse(text)


def test_a_wildcard_takes_connections_on_every_address() -> None:
    assert Address("0.0.0.0", 1).is_wildcard
    assert Address("::", 1).is_wildcard
    assert not Address("127.0.0.1", 1).is_wildcard


@pytest.mark.parametrize(
    ("local", "remote", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.9.9.9", True),
        ("::1", "::1", True),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::1%eth0", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("10.0.0.1", "unknown", False),
        ("unknown", "unknown", False),
    ],
)
def test_this_machine_is_loopback_or_the_address_that_was_dialled(
    local: str, remote: str, expected: bool
) -> None:
    assert is_this_machine(Address(local, 9876), Address(remote, 50_000)) is expected
