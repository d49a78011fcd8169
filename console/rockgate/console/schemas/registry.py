"""A schema registry: the schemas that values name by their ids, fetched once and remembered.

It speaks the REST interface that Confluent's registry has and others copy: `/schemas/ids/ID`, and
`/subjects/NAME/versions/NUMBER` for what a schema refers to. Requests run in threads, are bounded,
follow no redirects, and a registry that does not answer is asked again a minute later.
"""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import msgspec

from rockgate.console.schemas.avro import AvroSchema, NotAvro
from rockgate.console.schemas.protobuf import NotProtobuf, ProtobufSchema, split

TIMEOUT_S: Final = 4.0
ANSWER_BYTES_MAX: Final = 4 << 20
SCHEMAS_MAX: Final = 1_000
REFERENCES_MAX: Final = 50
AGAIN_S: Final = 60.0
AT_ONCE: Final = 4
HEAD: Final = 5
"""A zero, and four bytes of the id."""


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _Answer(msgspec.Struct):
    schema: str
    schemaType: str = "AVRO"  # the registry's name
    references: list[_Reference] = []


class NotRead(Exception):
    """A value, a schema or an answer that cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema by its id; `reads` is what reads values, None for those that need nothing."""

    id: int
    kind: str
    reads: AvroSchema | ProtobufSchema | None

    def decode(self, payload: bytes) -> Any:
        """A value as a tree; NotRead if it does not fit."""
        try:
            if isinstance(self.reads, AvroSchema):
                return self.reads.decode(payload)
            if isinstance(self.reads, ProtobufSchema):
                path, data = split(payload)
                return self.reads.decode(data, path)
            return msgspec.json.decode(payload)
        except (NotAvro, NotProtobuf, msgspec.DecodeError, RecursionError) as error:
            raise NotRead(str(error)) from None


def id_of(data: bytes | None) -> int | None:
    """The schema's id in a value that a serializer wrote; None if it cannot be one."""
    if data is None or len(data) <= HEAD or data[0] != 0:
        return None
    return int.from_bytes(data[1:HEAD], "big")


class Registry:
    """One registry. `load` asks it; `get` answers from memory."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"a schema registry has an http or https address, not {url!r}")
        host = parts.netloc.rpartition("@")[2]
        self._base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._login = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._login = f"Basic {b64encode(pair.encode()).decode()}"
        self._known: OrderedDict[int, Schema | None] = OrderedDict()
        self._again_at: dict[int, float] = {}
        self._down_until = 0.0
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.problem = ""
        """Why it could not be asked, last."""

    def get(self, id_: int) -> Schema | None:
        """A schema that was loaded."""
        return self._known.get(id_)

    async def load(self, ids: Iterable[int]) -> None:
        """Fetch those that are not known yet; what cannot be fetched stays unknown for a while."""
        now = time.monotonic()
        if now < self._down_until:
            return
        missing = [
            each
            for each in dict.fromkeys(ids)
            if self._known.get(each) is None and self._again_at.get(each, 0.0) <= now
        ]
        await asyncio.gather(*(self._fetch(each) for each in missing[:SCHEMAS_MAX]))

    async def _fetch(self, id_: int) -> None:
        async with self._turns:
            if time.monotonic() < self._down_until:
                return
            schema: Schema | None = None
            try:
                schema = await asyncio.to_thread(self._read, id_)
                self.problem = ""
            except NotRead as error:
                self._again_at[id_] = time.monotonic() + AGAIN_S
                self.problem = str(error)
            except OSError as error:
                self._down_until = time.monotonic() + AGAIN_S
                self.problem = f"the schema registry does not answer: {error}"
                return
        if schema is not None:
            self._known[id_] = schema
            self._again_at.pop(id_, None)
        while len(self._known) > SCHEMAS_MAX:
            self._known.popitem(last=False)
        while len(self._again_at) > SCHEMAS_MAX:
            self._again_at.pop(next(iter(self._again_at)))

    def _read(self, id_: int) -> Schema:
        """Fetch and parse one, in a thread."""
        answer = self._ask(f"/schemas/ids/{id_}")
        others: dict[str, str] = {}
        self._follow(answer.references, others)
        kind = answer.schemaType.upper()
        try:
            if kind == "AVRO":
                return Schema(id_, "Avro", AvroSchema(answer.schema, others))
            if kind == "PROTOBUF":
                return Schema(id_, "Protobuf", ProtobufSchema(answer.schema, others.values()))
        except (NotAvro, NotProtobuf) as error:
            raise NotRead(f"schema {id_} cannot be read: {error}") from None
        return Schema(id_, "JSON", None)

    def _follow(self, references: list[_Reference], others: dict[str, str]) -> None:
        """Fetch what a schema refers to; what is referred to by others comes before them."""
        for each in references:
            if each.name in others:
                continue
            if len(others) >= REFERENCES_MAX:
                raise NotRead(f"more than {REFERENCES_MAX} references")
            others[each.name] = ""
            answer = self._ask(f"/subjects/{quote(each.subject, safe='')}/versions/{each.version}")
            self._follow(answer.references, others)
            del others[each.name]
            others[each.name] = answer.schema

    def _ask(self, path: str) -> _Answer:
        request = urllib.request.Request(self._base + path)
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        if self._login:
            request.add_header("Authorization", self._login)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                data = answer.read(ANSWER_BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise NotRead(f"the schema registry answers {error.code} for {path}") from None
        if len(data) > ANSWER_BYTES_MAX:
            raise NotRead(f"the answer for {path} is too large")
        try:
            return msgspec.json.decode(data, type=_Answer)
        except msgspec.DecodeError as error:
            raise NotRead(f"the answer for {path} is not a schema: {error}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none: a registry is where it was said to be."""
