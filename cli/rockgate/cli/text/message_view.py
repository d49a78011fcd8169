"""A message's details: as fields of a JSON object, and as lines for people."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rockgate.protocol.remoting.bodies.admin import MessageView

PREVIEW: Final = "512"


def message_fields(message: MessageView, *, is_whole: bool) -> dict[str, Any]:
    """A message as programs see it; `is_whole` with its properties and the begin of its body."""
    fields: dict[str, Any] = {
        "topic": message.topic,
        "queue": message.queue,
        "message_id": message.message_id,
        "keys": message.keys,
        "tags": message.tags,
        "size_bytes": message.size,
        "born_ms": message.born_ms,
        "stored_ms": message.stored_ms,
        "reconsume_times": message.reconsume_times,
    }
    if is_whole:
        fields["properties"] = [
            {"name": name, "value": value} for name, value in message.properties
        ]
        fields |= body_fields(message.body)
    return fields


def body_fields(body: bytes | None) -> dict[str, str | None]:
    """The start of a body: text, base64 if it is not text, or null."""
    if body is None:
        return {"body": None}
    text = _text(body)
    return {"body": text} if text is not None else {"body_base64": b64encode(body).decode()}


def message_lines(message: MessageView) -> Iterable[tuple[str, str]]:
    """A message as people see it: names and values."""
    from rockgate.cli.text import values

    yield "topic", message.topic
    yield "queue", str(message.queue)
    yield "message id", message.message_id or "-"
    yield "keys", message.keys or "-"
    yield "tags", message.tags or "-"
    yield "born", values.time_text(message.born_ms)
    yield "stored", values.time_text(message.stored_ms)
    yield "reconsumed", str(message.reconsume_times)
    for name, value in message.properties:
        yield f"property {name}", value
    yield "size", values.size_text(message.size)
    yield "body", body_text(message.body, message.size)


def body_text(body: bytes | None, size: int) -> str:
    """The start of a body for people, with a note on what is left out."""
    if body is None:
        return "null"
    text = _text(body)
    rendered = text if text is not None else f"base64 {b64encode(body).decode()}"
    return f"{rendered} … ({size:,} bytes)" if len(body) < size else rendered


def echo_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print names and values, the values one under the other."""
    pairs = list(lines)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        say(f"{name:<{width}}  {value}")


def _text(body: bytes) -> str | None:
    """The body as text; a character that was cut in two at the end is left out."""
    for cut in range(min(4, len(body) + 1)):
        try:
            return body[: len(body) - cut].decode()
        except UnicodeDecodeError as error:
            if error.start < len(body) - 4:
                return None
    return None
