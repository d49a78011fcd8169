"""Which dead letters are meant: the flags that `list` and `resend` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.gateway.cli import asking, completing

if TYPE_CHECKING:
    from rockgate.gateway.cli.wire.deadletters import Filter

Topic = Annotated[
    str | None,
    typer.Option(
        metavar="TOPIC", help="Only those from this topic.", autocompletion=completing.topics
    ),
]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="Only those with this key.")]
Reason = Annotated[
    str | None, typer.Option(metavar="REASON", help="Only these: tries, asked or ordered.")
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only those that died at or after a time.")
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only those that died before a time.")
]


def read_filter(
    topic: str | None, key: str | None, reason: str | None, since: str | None, until: str | None
) -> Filter:
    """What the flags say."""
    from rockgate.gateway.cli import values
    from rockgate.gateway.cli.wire.deadletters import Filter

    plain = Filter()
    return Filter(
        topic,
        key,
        reason,
        asking.checked("--since", values.time_ms, since) if since else plain.since_ms,
        asking.checked("--until", values.time_ms, until) if until else plain.until_ms,
    )
