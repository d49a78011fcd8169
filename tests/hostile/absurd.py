"""Well-formed requests that no client would send, generated from the declarations."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.schema.kinds import (
    ArrayOf,
    Blob,
    Fixed,
    Kind,
    RecordData,
    Struct,
    Text,
)
from rockgate.protocol.kafka.schema.layout import resolve

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "x" * 249, "x" * 250, "x" * 20_000, ".", "..", "\0", "\ud7ff\U0001f600", "a b", "__x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What exists on the server, so that some requests pass the first check."""

    topic: str
    topic_id: bytes
    batch: bytes


class Absurd:
    """Values from the edges of a field's range, mixed with a few sensible ones."""

    def __init__(self, random: Random, known: Known) -> None:
        self._random = random
        self._known = known

    def request(self, message: type[Any], version: int) -> Any:
        """One request, or one struct inside it."""
        return message(
            **{
                spec.name: spec.make_default()
                if spec.tag is not None and self._random.random() < 0.5
                else self._value(spec.kind, version)
                for spec in declaration_of(message).fields
                if version in spec.versions
            }
        )

    def _value(self, kind: Kind[Any], version: int) -> Any:
        random = self._random
        kind, is_nullable = resolve(kind, version)
        if is_nullable and random.random() < 0.15:
            return None
        match kind:
            case Fixed():
                return self._fixed(kind.name)
            case Text():
                return random.choice((self._known.topic,) * 8 + _TEXTS)
            case RecordData():
                return self._records()
            case Blob():
                return random.choice((b"", random.randbytes(5), self._known.batch, bytes(10_000)))
            case Struct():
                return self.request(kind.type, version)
            case ArrayOf():
                count = random.choice((0, 1, 1, 1, 2, 3))
                return [self._value(kind.element, version) for _ in range(count)]
            case _:
                raise TypeError(f"no values of {kind!r}")

    def _fixed(self, name: str) -> Any:
        random = self._random
        if name == "bool":
            return random.random() < 0.5
        if name == "uuid":
            choices = (self._known.topic_id, self._known.topic_id, bytes(16), random.randbytes(16))
            return random.choice(choices)
        if name == "float64":
            return random.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))
        if name == "uint16":
            return random.choice((0, 1, 0xFFFF))
        top = 1 << (_BITS[name] - 1)
        return random.choice(
            (0, 0, 0, 1, -1, -2, -3, 7, top - 1, -top, random.randrange(-top, top))
        )

    def _records(self) -> bytes | None:
        """A batch with a few bytes changed, truncated, doubled or missing."""
        random, batch = self._random, bytearray(self._known.batch)
        what = random.randrange(6)
        if what == 0:
            return random.choice((None, b"", bytes(61), random.randbytes(200)))
        if what == 1:
            return bytes(batch[: random.randrange(len(batch))])
        if what == 2:
            return bytes(batch * 2)
        for _ in range(random.randrange(4)):
            batch[random.randrange(len(batch))] = random.choice((0, 0x7F, 0x80, 0xFF))
        return bytes(batch)
