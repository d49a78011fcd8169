"""A schema registry: answers as Confluent's has them, and what becomes of one that gives none.

No registry can be installed here: its answers are written down as its documentation has them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from rockgate.console.content.encodings import Encoding, decode
from rockgate.console.content.masks import masked
from rockgate.console.schemas.registry import NotRead, Registry, id_of

ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "town", "type": "string"}]}
PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "name", "type": "string"}, {"name": "at", "type": "Address"}],
}
ANSWERS: dict[str, Any] = {
    "/schemas/ids/1": {"schema": '{"type":"string"}'},
    "/schemas/ids/2": {
        "schema": json.dumps(PERSON),
        "references": [{"name": "Address", "subject": "address/value", "version": 3}],
    },
    "/subjects/address%2Fvalue/versions/3": {
        "subject": "address/value",
        "version": 3,
        "id": 9,
        "schema": json.dumps(ADDRESS),
    },
    "/schemas/ids/3": {"schemaType": "PROTOBUF", "schema": "message A { int32 n = 1; }"},
    "/schemas/ids/4": {"schemaType": "JSON", "schema": "{}"},
    "/schemas/ids/5": {"schema": '{"type":"record"}'},
    "/schemas/ids/6": ["nothing"],
}


class Answering(BaseHTTPRequestHandler):
    """Answers from the table, and counts."""

    asked: ClassVar[list[tuple[str, str | None]]]

    def do_GET(self) -> None:
        type(self).asked.append((self.path, self.headers.get("Authorization")))
        if self.path == "/schemas/ids/7":
            self.send_response(302)
            self.send_header("Location", "/schemas/ids/1")
            self.end_headers()
            return
        found = ANSWERS.get(self.path)
        self.send_response(200 if found is not None else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found or {"error_code": 40403}).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    class Handler(Answering):
        asked: ClassVar[list[tuple[str, str | None]]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}", Handler.asked
    server.shutdown()
    thread.join()
    server.server_close()


Served = tuple[str, list[tuple[str, str | None]]]


def wired(id_: int, payload: bytes) -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + payload


async def test_values_are_read_by_the_schema_that_they_name(served: Served) -> None:
    registry = Registry(f"http://{served[0]}")
    await registry.load([1, 2, 3, 4])
    text = decode(wired(1, b"\2a"), registry)
    assert (text.encoding, text.tree, text.schema_id) == (Encoding.AVRO, "a", 1)
    person = decode(wired(2, b"\6Ann\6Ulm"), registry)
    assert person.tree == {"name": "Ann", "at": {"town": "Ulm"}}
    number = decode(wired(3, b"\0\x08\x05"), registry)
    assert (number.encoding, number.tree) == (Encoding.PROTOBUF, {"n": 5})
    plain = decode(wired(4, b'{"a":1}'), registry)
    assert (plain.encoding, plain.tree) == (Encoding.JSON, {"a": 1})


async def test_a_mask_hides_fields_of_such_values(served: Served) -> None:
    registry = Registry(f"http://{served[0]}")
    await registry.load([2])
    found = masked(decode(wired(2, b"\6Ann\6Ulm"), registry), ["town"])
    assert "Ulm" not in found.text and "Ann" in found.text


async def test_a_schema_is_asked_for_once_and_with_the_login(served: Served) -> None:
    registry = Registry(f"http://me:p%40ss@{served[0]}/")
    await registry.load([1, 1])
    await registry.load([1])
    assert served[1] == [("/schemas/ids/1", "Basic bWU6cEBzcw==")]


@pytest.mark.parametrize("id_", [5, 6, 7, 99])
async def test_what_is_no_schema_leaves_the_value_as_it_was(served: Served, id_: int) -> None:
    registry = Registry(f"http://{served[0]}")
    await registry.load([id_])
    found = decode(wired(id_, b"\xff\xff"), registry)
    assert found.encoding is Encoding.HEX
    await registry.load([id_])
    asked = [path for path, _ in served[1] if path.startswith("/schemas/ids")]
    assert asked == [f"/schemas/ids/{id_}"], "it is asked again a minute later"


async def test_bytes_that_do_not_fit_their_schema_are_shown_as_bytes(served: Served) -> None:
    registry = Registry(f"http://{served[0]}")
    await registry.load([1])
    assert decode(wired(1, b"\xff\xff"), registry).encoding is Encoding.HEX
    schema = registry.get(1)
    assert schema is not None
    with pytest.raises(NotRead):
        schema.decode(b"")


async def test_a_registry_that_is_away_is_not_asked_for_each_message() -> None:
    registry = Registry("http://127.0.0.1:1")
    await registry.load(range(3))
    assert "does not answer" in registry.problem
    assert registry.get(1) is None


def test_an_address_that_is_none_is_refused() -> None:
    for url in ("ftp://a", "registry:8081", "http://"):
        with pytest.raises(ValueError, match="http or https"):
            Registry(url)


@pytest.mark.parametrize(
    ("data", "id_"), [(None, None), (b"", None), (b"\0\0\0\0\5", None), (b"\1\0\0\0\5x", None)]
)
def test_other_bytes_name_no_schema(data: bytes | None, id_: int | None) -> None:
    assert id_of(data) == id_
