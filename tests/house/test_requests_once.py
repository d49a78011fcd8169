"""Each request of RocketMQ's wire is sent from one room: the SDK, or for rockgate's own the CLI."""

import ast

from tests.house.checkout import parse, python_files

from rockgate.protocol.remoting.codes import RequestCode

OWN = 31_000
"""Codes from here on are rockgate's own, for operators; no other broker knows them."""


def codes(room: str) -> set[str]:
    """The request codes that a room names."""
    return {
        node.attr
        for path in python_files(room)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "RequestCode"
    }


def test_no_request_is_sent_by_the_command_line_and_by_the_sdk() -> None:
    assert codes("cli") & codes("sdk") == set()


def test_the_command_line_sends_rockgates_own_requests_and_no_others() -> None:
    found = codes("cli")
    assert found
    assert {name for name in found if RequestCode[name] < OWN} == set()
