import pytest

from rockgate.protocol.kafka import errors
from rockgate.protocol.kafka.errors import (
    ErrorCode,
    MalformedBatch,
    MalformedFrame,
    MalformedMessage,
    ProtocolError,
    UnsupportedVersion,
)


def test_every_kind_is_a_protocol_error_and_in_the_tree_on_top() -> None:
    # The other wire has kinds of its own, if a test before this one brought them in.
    kinds = [each for each in ProtocolError.__subclasses__() if each.__module__ == errors.__name__]
    assert kinds
    for kind in kinds:
        assert errors.__doc__ is not None and kind.__name__ in errors.__doc__


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MalformedFrame("Negative size -1."), "Negative size -1."),
        (UnsupportedVersion(3, 99), "API key 3 version 99 is not supported."),
        (MalformedMessage("X", 2, "a.b", "not UTF-8"), "X v2 is invalid at a.b: not UTF-8."),
        (MalformedMessage("X", 2, "", "cut"), "X v2 is invalid: cut."),
        (MalformedBatch("Magic is 1."), "Magic is 1."),
        (MalformedBatch("Key is null.", index=3), "Record 3: Key is null."),
    ],
)
def test_an_error_says_what_and_where_in_one_sentence(error: ProtocolError, text: str) -> None:
    assert str(error) == text


def test_error_codes_are_exported_here() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
