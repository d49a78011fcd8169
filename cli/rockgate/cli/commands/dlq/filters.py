"""Selecting dead letters: the flags that `list` and `resend` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.cli.app import completion, runner

if TYPE_CHECKING:
    from rockgate.cli.client.remoting.dead_letters import Filter

Topic = Annotated[
    str | None,
    typer.Option(
        metavar="TOPIC", help="Only dead letters from this topic.", autocompletion=completion.topics
    ),
]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="Only dead letters with this key.")]
Reason = Annotated[
    str | None, typer.Option(metavar="REASON", help="Only this reason: tries, asked or ordered.")
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only dead-lettered at or after this time.")
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only dead-lettered before this time.")
]


def read_filter(
    topic: str | None, key: str | None, reason: str | None, since: str | None, until: str | None
) -> Filter:
    """The filter that the flags describe."""
    from rockgate.cli.client.remoting.dead_letters import Filter
    from rockgate.cli.text import values

    plain = Filter()
    return Filter(
        topic,
        key,
        reason,
        runner.checked("--since", values.time_ms, since) if since else plain.since_ms,
        runner.checked("--until", values.time_ms, until) if until else plain.until_ms,
    )
