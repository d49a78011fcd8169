"""`rockgate console`: run the web console until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rockgate.console.settings import Settings

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
LISTEN = "127.0.0.1:8090"
SERVER = "127.0.0.1:9092"
USAGE_STATUS = 2
START_STATUS = 1


Listen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Address of the console; port 0 picks one.")
]
BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        envvar="ROCKGATE_BOOTSTRAP_SERVER",
        help="Address of a broker; separate several with commas.",
    ),
]
Broker = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        envvar="ROCKGATE_BROKER",
        help="Address of the RocketMQ listener. [default: port 10911 of the same host]",
        show_default=False,
    ),
]
Metrics = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Address of /metrics, or off. [default: port 8080 of the same host]",
        show_default=False,
    ),
]
MetricsTls = Annotated[bool, typer.Option("--metrics-tls", help="Read /metrics over TLS.")]
ClientConfig = Annotated[
    str | None,
    typer.Option(
        "--client-config",
        metavar="FILE",
        envvar="ROCKGATE_CLIENT_CONFIG",
        help="Properties of a Kafka client: servers, TLS and login.",
    ),
]
Login = Annotated[
    bool | None,
    typer.Option(
        "--login/--no-login",
        help="Whether visitors log in as users of the server, or all are the one of the client"
        " config. [default: they log in if security.protocol has SASL]",
        show_default=False,
    ),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Change nothing.")]
Host = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST[:PORT]", help="Another name under which browsers reach it; repeatable."
    ),
]
Mask = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[TOPIC:]FIELD", help="Hide a field of messages; repeatable, takes * and ?."
    ),
]
Timeout = Annotated[
    str, typer.Option(metavar="DURATION", help="Timeout for connecting and each response.")
]


@app.command(
    epilog="""
[bold]Examples[/bold]

rockgate console

rockgate console --bootstrap-server kafka.example:9092 --read-only

rockgate console --client-config client.properties --login
"""
)
def console(
    listen: Listen = LISTEN,
    bootstrap_server: BootstrapServer = "",
    broker: Broker = "",
    metrics: Metrics = "",
    metrics_tls: MetricsTls = False,
    client_config: ClientConfig = None,
    login: Login = None,
    read_only: ReadOnly = False,
    host: Host = None,
    mask: Mask = None,
    timeout: Timeout = "10s",
) -> None:
    """Run the web console for a server, or for any Kafka cluster."""
    from rockgate.gateway.net.listening.endpoint import is_loopback
    from rockgate.sdk.errors import InvalidClientConfig

    try:
        settings = _settings(
            listen,
            client_config,
            kafka=bootstrap_server,
            remoting=broker,
            metrics=metrics,
            metrics_tls=metrics_tls,
            timeout=timeout,
            login=login,
            is_read_only=read_only,
            hosts=tuple(host or ()),
            masks=tuple(mask or ()),
        )
    except (InvalidClientConfig, ValueError) as error:
        _fail(str(error), USAGE_STATUS)
    is_open = not is_loopback(settings.listen.host) and not settings.demands_login
    if is_open and not settings.is_read_only:
        _say(
            "rockgate: Anyone who reaches this address can change the server. Use --login or"
            " --read-only."
        )
    from rockgate.console.serving import CannotListen, run

    try:
        run(settings)
    except CannotListen as error:
        _fail(str(error), START_STATUS)


def _settings(
    listen: str,
    client_config: str | None,
    *,
    kafka: str,
    remoting: str,
    metrics: str,
    metrics_tls: bool,
    timeout: str,
    login: bool | None,
    is_read_only: bool,
    hosts: tuple[str, ...],
    masks: tuple[str, ...],
) -> Settings:
    """The options as settings; ValueError or InvalidClientConfig says which cannot be used."""
    from rockgate.cli.text import values
    from rockgate.console.settings import Servers, Settings
    from rockgate.gateway.net.address import Address
    from rockgate.sdk.client_config import ClientConfig

    config = ClientConfig.find(client_config)
    seeds = values.addresses(kafka or config.bootstrap_servers or SERVER)
    servers = Servers(
        kafka=seeds,
        remoting=_one(remoting or config.broker, Address(seeds[0].host, 10911)),
        metrics=None if metrics == "off" else _one(metrics, Address(seeds[0].host, 8080)),
        metrics_tls=metrics_tls,
    )
    return Settings(
        listen=_address(listen),
        servers=servers,
        config=config,
        timeout_s=values.duration_ms(timeout) / 1000,
        demands_login=_demands_login(config, login),
        is_read_only=is_read_only,
        hosts=hosts,
        masks=masks,
    )


def _demands_login(config: Any, login: bool | None) -> bool:
    """Whether visitors log in; ValueError where they could not, or would not need to."""
    if login and not config.has_login:
        raise ValueError(
            f"--login needs security.protocol=SASL_PLAINTEXT or SASL_SSL in the client config, not"
            f" {config.security_protocol}"
        )
    if login is False and config.has_login and config.lacks_password:
        raise ValueError("--no-login needs the password of the user in the client config")
    return config.has_login if login is None else login


def _address(text: str) -> Any:
    from rockgate.gateway.net.address import Address

    try:
        return Address.parse(text)
    except ValueError:
        raise ValueError(f"expected HOST:PORT, got {text!r}") from None


def _one(text: str, default: Any) -> Any:
    from rockgate.cli.text import values

    return values.addresses(text, default.port)[0] if text else default


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _fail(problem: str, status: int) -> NoReturn:
    sentence = f"{problem[:1].upper()}{problem[1:].rstrip('.')}."
    _say(f"rockgate: {sentence}")
    raise typer.Exit(status)
