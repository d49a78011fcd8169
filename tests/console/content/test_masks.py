from rockgate.console.content.encodings import decode
from rockgate.console.content.masks import HIDDEN, fields_for, is_masked, masked


def test_a_rule_is_for_all_topics_or_for_some() -> None:
    rules = ("password", "card*:card.number", "orders:*token*")
    assert fields_for("orders", rules) == ("password", "*token*")
    assert fields_for("cards", rules) == ("password", "card.number")


def test_a_field_is_hidden_wherever_it_is() -> None:
    value = decode(b'{"user": {"password": {"a": 1}}, "list": [{"password": 2}], "other": 3}')
    assert masked(value, ("password",)).tree == {
        "user": {"password": HIDDEN},
        "list": [{"password": HIDDEN}],
        "other": 3,
    }
    assert masked(value, ("user.password",)).tree["list"] == [{"password": 2}]
    assert masked(value, ()) is value


def test_text_without_fields_is_hidden_whole() -> None:
    assert masked(decode(b"password=1"), ("password",)).text == HIDDEN
    assert masked(decode(b"\xff"), ("password",)).text == HIDDEN
    assert masked(decode(None), ("password",)).text == "null"


def test_headers_are_hidden_by_their_name() -> None:
    assert is_masked("x-token", ("*token*",))
    assert not is_masked("x-tokens", ("token",))
