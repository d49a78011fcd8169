"""`rockgate namesrv`: run a name server alone, for brokers elsewhere."""

from rockgate.gateway.cli import options

START_STATUS = 1

EXAMPLES = """
[bold]Examples[/bold]

rockgate namesrv

rockgate namesrv --namesrv 0.0.0.0:9876 --data-dir /srv/namesrv
"""


def namesrv(
    config: options.ConfigFile = None,
    data_dir: options.DataDir = None,
    namesrv: options.Namesrv = None,
    set_: options.Set = None,
    log_level: options.LogLevel = None,
) -> None:
    """Run RocketMQ's name server alone.

    `rockgate serve` has one already; this is for brokers that run elsewhere. It keeps nothing but
    kvConfig.json in the data directory, and prints one `ready` line when it answers.
    """
    flags = options.flags(
        data_dir=data_dir,
        kafka=None,
        remoting=None,
        namesrv=namesrv,
        http=None,
        advertise_kafka=None,
        advertise_remoting=None,
        log_level=log_level,
    )
    gathered = options.gathered(config=config, flags=flags, pairs=set_ or ())

    from rockgate.gateway.errors import StartError
    from rockgate.gateway.remoting import alone

    try:
        alone.run(gathered.config)
    except StartError as error:
        options.fail([str(error)], START_STATUS)
