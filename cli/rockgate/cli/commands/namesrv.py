"""`rockgate namesrv`: run a name server alone, for brokers elsewhere."""

from rockgate.cli.app import server_options

START_STATUS = 1

EXAMPLES = """
[bold]Examples[/bold]

rockgate namesrv

rockgate namesrv --namesrv 127.0.0.1:9876 --data-dir /srv/namesrv
"""


def namesrv(
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    namesrv: server_options.Namesrv = None,
    set_: server_options.Set = None,
    log_level: server_options.LogLevel = None,
) -> None:
    """Run a standalone RocketMQ name server.

    `rockgate serve` includes one; use this for brokers that run elsewhere. It stores only
    kvConfig.json in the data directory, and prints one `ready` line once it accepts connections.
    """
    flags = server_options.flags(
        data_dir=data_dir,
        kafka=None,
        remoting=None,
        namesrv=namesrv,
        http=None,
        advertise_kafka=None,
        advertise_remoting=None,
        log_level=log_level,
    )
    gathered = server_options.gathered(config=config, flags=flags, pairs=set_ or ())

    from rockgate.gateway.compose.nameserver import standalone
    from rockgate.gateway.runtime.errors import ConfigError, StartError

    try:
        standalone.run(gathered.config, gathered.given, gathered.deprecated)
    except ConfigError as error:
        server_options.fail(error.problems, server_options.USAGE_STATUS)
    except StartError as error:
        server_options.fail([str(error)], START_STATUS)
