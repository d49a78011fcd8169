"""How an entry lies on disk is known to `protocol.entry` and the store; the gateway asks them."""

import ast

import pytest
from tests.house.checkout import ROOT, imported_names, parse, python_files

LAYOUT_CALLS = {"Struct", "unpack", "unpack_from", "pack_into", "calcsize", "from_bytes"}
SOURCES = {
    str(path): parse(path)
    for path in python_files("gateway", "cli")
    if any(name.startswith("rockgate.protocol.entry") for name in imported_names(parse(path)))
    or "from rockgate.protocol import entry" in (ROOT / path).read_text("utf-8")
}


def layout_calls(tree: ast.AST) -> list[int]:
    """Return the lines where bytes are taken apart, or put together, by a layout."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls]
    return [call.lineno for call, name in zip(calls, names, strict=True) if name in LAYOUT_CALLS][
        :1
    ]


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_no_one_in_the_gateway_unpacks_an_entry(name: str) -> None:
    found = layout_calls(SOURCES[name])
    assert found == [], "name what is read in protocol.entry, and call it"


@pytest.mark.parametrize(
    "line",
    [
        'HEAD = struct.Struct(">II12xq")',
        "size = HEAD.unpack_from(view)[0]",
        "size = int.from_bytes(view[:4], 'big')",
    ],
)
def test_a_layout_is_noticed(line: str) -> None:
    assert layout_calls(ast.parse(line)) == [1]
