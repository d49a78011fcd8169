"""`rockgate gateway`: serve Kafka clients over an Apache RocketMQ cluster."""

from typing import Annotated

import typer

from rockgate.cli.app import server_options

START_STATUS = 1

EXAMPLES = """
[bold]Examples[/bold]

rockgate gateway --name-servers 10.0.0.1:9876

rockgate gateway --name-servers ns-1:9876,ns-2:9876 --kafka 0.0.0.0:9092 \
--advertise-kafka kafka.example:9092
"""

NameServers = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT[,…]", help="Name servers of the RocketMQ cluster.", show_default=False
    ),
]
NodeId = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="Kafka node id.", show_default="from the address"),
]
ConfirmTables = Annotated[
    bool,
    typer.Option(
        "--confirm-tables",
        help="Number partitions by routes, although the name servers have lost their tables.",
    ),
]


def gateway(
    name_servers: NameServers = None,
    config: server_options.ConfigFile = None,
    kafka: server_options.Kafka = None,
    advertise_kafka: server_options.AdvertiseKafka = None,
    http: server_options.Http = None,
    node_id: NodeId = None,
    confirm_tables: ConfirmTables = False,
    set_: server_options.Set = None,
    log_level: server_options.LogLevel = None,
) -> None:
    """Serve Kafka clients over an Apache RocketMQ cluster.

    Topics, records and committed offsets are the cluster's; the gateway stores nothing. Prints one
    `ready` line once it accepts connections. Transactions are not supported.
    """
    flags = server_options.flags(
        data_dir=None,
        kafka=kafka,
        remoting=None,
        namesrv=None,
        http=http,
        advertise_kafka=advertise_kafka,
        advertise_remoting=None,
        log_level=log_level,
    )
    flags["--name-servers"] = ("rocketmq.name_servers", name_servers)
    flags["--node-id"] = ("server.node_id", None if node_id is None else str(node_id))
    confirmed = "true" if confirm_tables else None
    flags["--confirm-tables"] = ("rocketmq.confirm_tables", confirmed)
    gathered = server_options.gathered(config=config, flags=flags, pairs=set_ or ())

    from rockgate.gateway.compose.rocketmq import app
    from rockgate.gateway.runtime.errors import StartError

    try:
        app.run(gathered.config, gathered.given, gathered.deprecated)
    except StartError as error:
        server_options.fail([str(error)], START_STATUS)
