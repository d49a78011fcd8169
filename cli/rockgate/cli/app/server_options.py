"""The flags that `serve` and `config` share, and gathering the configuration they ask for."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from rockgate.cli.text.echo import say
from rockgate.gateway.compose.config import Gathered, gather
from rockgate.gateway.compose.config.gather import VARIABLES
from rockgate.gateway.compose.config.sources import (
    CONFIG_VARIABLE,
    from_environment,
    from_file,
    from_flags,
    from_pairs,
)
from rockgate.gateway.runtime.errors import ConfigError

USAGE_STATUS = 2


def _address(help_: str, default: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="HOST:PORT", help=help_, show_default=default
    )
    return option


ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file, in TOML.")
]
DataDir = Annotated[
    str | None, typer.Option(metavar="DIR", help="Data directory.", show_default="./data")
]
Kafka = Annotated[str | None, _address("Kafka listener.", "127.0.0.1:9092")]
Remoting = Annotated[str | None, _address("RocketMQ listener.", "127.0.0.1:10911")]
Namesrv = Annotated[str | None, _address("RocketMQ name server.", "127.0.0.1:9876")]
Http = Annotated[str | None, _address("HTTP: /health, /ready, /metrics.", "127.0.0.1:8080")]
AdvertiseKafka = Annotated[
    str | None, _address("Address given to Kafka clients.", "listener address")
]
AdvertiseRemoting = Annotated[
    str | None, _address("Address given to RocketMQ clients.", "listener address")
]
Replication = Annotated[str | None, _address("Where standbys connect.", "off")]
ReplicaOf = Annotated[str | None, _address("Follow this primary, as a standby.", "off")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a setting, by its dotted name or Kafka's name; repeatable.",
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option(
        metavar="LEVEL", help="Log level: error, warning, info or debug.", show_default="info"
    ),
]


def flags(
    *,
    data_dir: str | None,
    kafka: str | None,
    remoting: str | None,
    namesrv: str | None,
    http: str | None,
    advertise_kafka: str | None,
    advertise_remoting: str | None,
    log_level: str | None,
    replication: str | None = None,
    replica_of: str | None = None,
) -> dict[str, tuple[str, str | None]]:
    """The setting of each flag, and its value as text."""
    return {
        "--data-dir": ("server.data_dir", data_dir),
        "--kafka": ("kafka.listen", kafka),
        "--remoting": ("remoting.listen", remoting),
        "--namesrv": ("namesrv.listen", namesrv),
        "--http": ("http.listen", http),
        "--advertise-kafka": ("kafka.advertise", advertise_kafka),
        "--advertise-remoting": ("remoting.advertise", advertise_remoting),
        "--replication": ("replication.listen", replication),
        "--replica-of": ("replication.replica_of", replica_of),
        "--log-level": ("server.log_level", log_level),
    }


def gathered(
    *,
    config: Path | None,
    flags: dict[str, tuple[str, str | None]],
    pairs: Sequence[str],
) -> Gathered:
    """The configuration in effect for this command line; exits if it is invalid."""
    try:
        file = config or (Path(name) if (name := os.environ.get(CONFIG_VARIABLE)) else None)
        return gather(
            from_file(file) if file else (),
            from_environment(os.environ, VARIABLES),
            [*from_pairs(pairs), *from_flags(flags)],
        )
    except ConfigError as error:
        fail(error.problems, USAGE_STATUS)


def fail(problems: Sequence[str], status: int) -> NoReturn:
    """Print each problem on a line of standard error and end the command."""
    for problem in problems:
        say(f"rockgate: {problem}", err=True)
    raise typer.Exit(status)
