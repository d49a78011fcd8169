"""Signatures of requests, against those of RocketMQ's own classes."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.command import Command, decode
from rockgate.protocol.remoting.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden" / "signatures.json").read_text()
)
SECRET: str = GOLDEN["secret"]
RECORDED = [
    pytest.param(row, id=f"{row['client']} {row['encoding']} {row['request']}")
    for row in GOLDEN["requests"]
]


def recorded(row: dict[str, str]) -> Command:
    """The request of a golden row."""
    return decode(memoryview(base64.b64decode(row["frame"]))[4:])


def test_both_lines_of_java_clients_are_recorded_in_both_encodings() -> None:
    assert {(row["client"], row["encoding"]) for row in GOLDEN["requests"]} == {
        (f"rocketmq-java {version}", encoding)
        for version in ("4.9.7", "5.5.0")
        for encoding in ("JSON", "ROCKETMQ")
    }


@pytest.mark.parametrize("row", RECORDED)
def test_a_request_that_java_signed_verifies_with_its_secret_only(row: dict[str, str]) -> None:
    request = recorded(row)
    assert request.fields[ACCESS_KEY] == GOLDEN["access_key"]
    assert signature.verify(request, SECRET)
    assert signature.verify(request, SECRET.encode())
    assert not signature.verify(request, SECRET + "x")


@pytest.mark.parametrize("row", [r for r in RECORDED if "4.9.3" not in str(r.id)])
def test_we_sign_as_java_does(row: dict[str, str]) -> None:
    request = recorded(row)
    own = {ACCESS_KEY, SIGNATURE, SECURITY_TOKEN}
    signed = signature.sign(
        {name: value for name, value in request.fields.items() if name not in own},
        request.body,
        access_key="alice",
        secret=SECRET,
        security_token=request.fields.get(SECURITY_TOKEN),
    )
    assert signed == request.fields
    assert signed[SIGNATURE] == row["signature"]
    assert len(row["signature"]) == signature.SIGNATURE_CHARS


@pytest.mark.parametrize("row", RECORDED[:2])
def test_a_changed_value_body_or_added_field_does_not_verify(row: dict[str, str]) -> None:
    request = recorded(row)
    body = bytearray(request.body)
    body[17] ^= 1
    assert not signature.verify(Command(310, request.fields, body, version=407), SECRET)
    for change in ({"b": "others"}, {"z": "more"}, {ACCESS_KEY: "bob"}, {SIGNATURE: ""}):
        assert not signature.verify(
            Command(310, request.fields | change, request.body, version=407), SECRET
        )


def test_a_request_without_a_signature_or_with_one_beyond_ascii_does_not_verify() -> None:
    for given in ({}, {SIGNATURE: "ä" * 28}, {SIGNATURE: "\u0000"}):
        assert not signature.verify(Command(34, {ACCESS_KEY: "alice", **given}), SECRET)


def test_only_clients_up_to_4_9_3_may_leave_the_kind_of_a_query_unsigned() -> None:
    fields = signature.sign({"topic": "orders"}, b"", access_key="alice", secret=SECRET)
    fields["_UNIQUE_KEY_QUERY"] = "true"
    assert signature.verify(Command(12, fields, version=399), SECRET)
    assert not signature.verify(Command(12, fields, version=407), SECRET)


def test_lone_surrogates_from_json_do_not_break_the_check() -> None:
    request = Command(34, {ACCESS_KEY: "alice", "\ud800": "\udfff", SIGNATURE: "\ud800"})
    assert not signature.verify(request, SECRET)
