"""`rockgate serve`: run the server until it is stopped."""

from rockgate.cli.app import server_options

START_STATUS = 1

EXAMPLES = """
[bold]Examples[/bold]

rockgate serve

rockgate serve --data-dir /srv/rockgate --config rockgate.toml --advertise-kafka kafka.example:9092

rockgate serve --kafka 127.0.0.1:0 --http off --set num.partitions=8 --set kafka.idle_ms_max=30m

rockgate serve --config rockgate.toml --log-level debug
"""


def serve(
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
) -> None:
    """Run the server.

    Prints one `ready` line on standard output once every listener accepts connections, and logs to
    standard error. On SIGTERM or SIGINT it completes requests in flight and exits 0. The address
    `off` disables a listener; port 0 picks a free port.
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

    from rockgate.gateway.compose import app
    from rockgate.gateway.runtime.errors import ConfigError, StartError

    try:
        app.run(gathered.config, gathered.given, gathered.deprecated)
    except ConfigError as error:
        server_options.fail(error.problems, server_options.USAGE_STATUS)
    except StartError as error:
        server_options.fail([str(error)], START_STATUS)
