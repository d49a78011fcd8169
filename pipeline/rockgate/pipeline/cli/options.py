"""The flags that jobs share, and how their text is parsed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.pipeline.cli.client_config import (
    FILE_VARIABLE,
    SERVERS,
    client_options,
    refuse_secret,
)
from rockgate.pipeline.errors import BadOption

if TYPE_CHECKING:
    from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics
    from rockgate.pipeline.stream import Pace

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
_DURATION = re.compile(r"^(\d{1,12}) *(ms|s|m|h|d)$")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE = re.compile(r"^(\d+) *(|[kmg])(?:i?b)?$", re.IGNORECASE)

BOOTSTRAP_VARIABLE = "ROCKGATE_BOOTSTRAP_SERVER"
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar=BOOTSTRAP_VARIABLE,
        help="Bootstrap server: rockgate or any Kafka.",
        show_default=DEFAULT_BOOTSTRAP,
    ),
]
KafkaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka-option",
        metavar="NAME=VALUE",
        help="Kafka client option, such as security.protocol=SSL; repeatable, not for secrets.",
    ),
]
CLIENT_CONFIG_HELP = "Properties of a Kafka client: servers, TLS and login."
ClientConfig = Annotated[
    str | None,
    typer.Option("--client-config", metavar="FILE", envvar=FILE_VARIABLE, help=CLIENT_CONFIG_HELP),
]
FromOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Kafka client option for --from; repeatable."),
]
ToOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Kafka client option for --to; repeatable."),
]
FromClientConfig = Annotated[
    str | None, typer.Option(metavar="FILE", help=f"For --from: {CLIENT_CONFIG_HELP}")
]
ToClientConfig = Annotated[
    str | None,
    typer.Option(metavar="FILE", envvar=FILE_VARIABLE, help=f"For --to: {CLIENT_CONFIG_HELP}"),
]
TopicNames = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="NAME", help="Topic; repeatable, or comma-separated."),
]
Pattern = Annotated[
    str, typer.Option(metavar="REGEX", help="Regular expression for topics, including new ones.")
]
Start = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="Where the first run starts: earliest, latest, or offsets as JSON.",
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Keep running and process new records until stopped.")
]
Every = Annotated[str, typer.Option(metavar="TIME", help="With --follow: interval between steps.")]
StepRecords = Annotated[
    int, typer.Option("--step", metavar="COUNT", min=1, help="Maximum records per step.")
]
AllowDataLoss = Annotated[
    bool,
    typer.Option(
        "--allow-data-loss", help="Continue if records were deleted before they were read."
    ),
]
Checkpoint = Annotated[str, typer.Option(metavar="DIR", help="Checkpoint directory, for progress.")]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master, such as spark://host:7077, or Connect server, such as "
        "sc://host:15002, which SPARK_REMOTE can also set.",
        show_default="local[*]",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="Spark setting; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print progress as JSON lines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]


def pairs(texts: Sequence[str] | None, flag: str) -> dict[str, str]:
    """Options of the form NAME=VALUE, by name."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise BadOption(f"Invalid {flag}: expected NAME=VALUE, got {text!r}.")
        if flag != "--conf":
            name = name.removeprefix("kafka.")
            refuse_secret(name, value, flag)
        found[name] = value
    return found


def cluster(
    bootstrap: str,
    texts: Sequence[str] | None,
    client_config: str | None = None,
    *,
    flag: str = "--kafka-option",
    environment: Mapping[str, str] | None = None,
) -> Cluster:
    """The server that the options name; those of the command line go before the file's."""
    from rockgate.pipeline.spark.kafka import Cluster

    variables = os.environ if environment is None else environment
    options = client_options(client_config, variables)
    servers = options.pop(SERVERS, "")
    return Cluster(
        bootstrap=bootstrap or servers or DEFAULT_BOOTSTRAP,
        options={**options, **pairs(texts, flag)},
    )


def topics(names: Sequence[str] | None, pattern: str = "") -> Topics:
    """The topics that the options name."""
    from rockgate.pipeline.spark.kafka import Topics, names_of

    if not names and not pattern:
        raise BadOption("Give --topic NAME or --pattern REGEX.")
    return Topics(names=names_of(names or ()), pattern=pattern)


def reading(start: str, step: int, allow_data_loss: bool) -> Reading:
    """How topics are read."""
    from rockgate.pipeline.spark.kafka import Reading

    return Reading(start=start, offsets_per_batch=step, is_loss_allowed=allow_data_loss)


def pace(follow: bool, every: str) -> Pace:
    """How often steps run."""
    from rockgate.pipeline.stream import Pace

    return Pace(is_following=follow, every=every)


def moment(text: str, flag: str) -> datetime | None:
    """A time in ISO 8601; without a zone it is UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(
            f"Invalid {flag}: expected a time such as 2026-11-16 or 2026-11-16T08:30:00+01:00,"
            f" got {text!r}."
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def size(text: str, flag: str) -> int:
    """A number of bytes, such as 64m."""
    match = _SIZE.match(text.strip())
    if not match:
        raise BadOption(f"Invalid {flag}: expected a size such as 64m or 1g, got {text!r}.")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()]


def duration(text: str, flag: str) -> int:
    """Milliseconds of a time such as 10m; 0 if none is given."""
    if not text:
        return 0
    match = _DURATION.match(text.strip())
    if not match or not int(match[1]):
        raise BadOption(
            f"Invalid {flag}: expected a duration such as 30s, 10m or 2h, got {text!r}."
        )
    return int(match[1]) * _UNIT_MS[match[2]]
