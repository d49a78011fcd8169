import pytest

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.server.config import NamesrvConfig, RemotingConfig


def test_words_after_a_name_say_what_a_listener_does_differently() -> None:
    config = RemotingConfig(
        tls="permissive",
        listeners="A://h:1,B://h:2,C://h:3",
        listener_security="A:enforcing+signature,B:signature",
        advertised_listeners="B://b.example:9",
    )
    a, b, c = config.endpoints()
    assert [(each.tls, each.authentication) for each in (a, b, c)] == [
        ("enforcing", "signature"),
        ("permissive", "signature"),
        ("permissive", "none"),
    ]
    assert b.advertised == Address("b.example", 9)
    assert [each.label for each in (a, b, c)] == ["remoting", "remoting.B", "remoting.C"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listeners": "DEFAULT://h:1"}, "which is the name of namesrv.listen"),
        ({"listener_security": "A:enforcing"}, "A, which is not a listener"),
        ({"listener_security": "DEFAULT:on"}, "must be of disabled, permissive"),
    ],
)
def test_listeners_that_make_no_sense_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        NamesrvConfig(**settings)  # type: ignore[arg-type] # of several types
