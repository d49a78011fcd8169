"""`rockgate config`: the settings in effect, and where each came from."""

from typing import Annotated

import typer

from rockgate.cli.app import server_options
from rockgate.gateway.compose.config import SETTINGS, Gathered
from rockgate.gateway.compose.config.gather import DEFAULT_ORIGIN
from rockgate.gateway.compose.config.values import show

EXAMPLES = """
[bold]Examples[/bold]

rockgate config

rockgate config --config rockgate.toml --set num.partitions=8

rockgate config --json
"""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Changed = Annotated[
    bool, typer.Option("--changed", help="Only settings that differ from their defaults.")
]


def config(
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    kafka: server_options.Kafka = None,
    remoting: server_options.Remoting = None,
    namesrv: server_options.Namesrv = None,
    http: server_options.Http = None,
    advertise_kafka: server_options.AdvertiseKafka = None,
    advertise_remoting: server_options.AdvertiseRemoting = None,
    replication: server_options.Replication = None,
    replica_of: server_options.ReplicaOf = None,
    set_: server_options.Set = None,
    log_level: server_options.LogLevel = None,
    json: Json = False,
    changed: Changed = False,
) -> None:
    """Print the settings in effect and where each comes from.

    Accepts the flags of `serve` and reads the same file and environment, but starts nothing.
    """
    flags = server_options.flags(
        data_dir=data_dir,
        kafka=kafka,
        remoting=remoting,
        namesrv=namesrv,
        http=http,
        advertise_kafka=advertise_kafka,
        advertise_remoting=advertise_remoting,
        replication=replication,
        replica_of=replica_of,
        log_level=log_level,
    )
    gathered = server_options.gathered(config=config, flags=flags, pairs=set_ or ())
    names = [name for name in SETTINGS if not changed or gathered.origins[name] != DEFAULT_ORIGIN]
    if json:
        _print_json(gathered, names)
    else:
        _print_table(gathered, names)


def _value(gathered: Gathered, name: str) -> object:
    setting = SETTINGS[name]
    return getattr(getattr(gathered.config, setting.section), setting.field)


def _print_json(gathered: Gathered, names: list[str]) -> None:
    from json import dumps

    def plain(value: object) -> object:
        return value if value is None or isinstance(value, (bool, int, float)) else show(value)

    found = {
        name: {"value": plain(_value(gathered, name)), "source": gathered.origins[name]}
        for name in names
    }
    typer.echo(dumps(found, indent=2))


def _print_table(gathered: Gathered, names: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    # A long value takes several lines; a name gets copied, so it stays whole.
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("source", no_wrap=True)
    for name in names:
        value, origin = show(_value(gathered, name)), gathered.origins[name]
        table.add_row(name, value, origin, style="dim" if origin == DEFAULT_ORIGIN else None)
    Console(highlight=False, markup=False, soft_wrap=True).print(table)
