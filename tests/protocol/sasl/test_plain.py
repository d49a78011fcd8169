"""SASL PLAIN: one message, read without ever quoting it."""

from __future__ import annotations

import pytest

from rockgate.protocol.sasl.errors import MalformedToken
from rockgate.protocol.sasl.plain import PlainToken, read_token


@pytest.mark.parametrize("authorization_id", ["", "alice"])
def test_user_and_password_are_read(authorization_id: str) -> None:
    token = f"{authorization_id}\0alice\0s3cret".encode()
    assert read_token(token) == PlainToken(authorization_id, "alice", "s3cret")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"alice\0s3cret",
        b"\0\0s3cret",
        b"\0alice\0",
        b"a\0b\0s3cret\0",
        b"\0\xff\0s3cret",
        b"root\0alice\0s3cret",
        b"\0alice\0s3cret" + b"t" * 4_096,
    ],
    ids=["empty", "two", "no user", "no password", "four", "not UTF-8", "as another", "large"],
)
def test_anything_else_is_refused_without_being_quoted(token: bytes) -> None:
    with pytest.raises(MalformedToken) as raised:
        read_token(token)
    assert "s3cret" not in str(raised.value)


def test_a_password_is_not_shown() -> None:
    assert repr(read_token(b"\0alice\0s3cret")) == "PlainToken(user='alice')"
