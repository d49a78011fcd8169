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
Certificate = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Certificate chain in PEM: serve over TLS. Needs --key."),
]
Key = Annotated[
    str | None, typer.Option(metavar="FILE", help="Private key of the certificate, in PEM.")
]
BehindTls = Annotated[
    bool,
    typer.Option("--behind-tls", help="A proxy in front of it has TLS: cookies demand it."),
]
SchemaRegistry = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="ROCKGATE_SCHEMA_REGISTRY",
        help="A schema registry, for values in Avro and Protobuf: http://[USER:PASSWORD@]HOST:PORT.",
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

rockgate console --listen 0.0.0.0:8443 --host console.example:8443 --certificate c.pem --key k.pem
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
    certificate: Certificate = None,
    key: Key = None,
    behind_tls: BehindTls = False,
    mask: Mask = None,
    schema_registry: SchemaRegistry = None,
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
            schema_registry=schema_registry,
            tls=(certificate, key, behind_tls),
        )
        _check_logins_are_private(settings)
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
    schema_registry: str | None,
    tls: tuple[str | None, str | None, bool],
) -> Settings:
    """The options as settings; ValueError or InvalidClientConfig says which cannot be used."""
    from rockgate.cli.text import values
    from rockgate.console.settings import Servers, Settings
    from rockgate.gateway.net.address import Address
    from rockgate.sdk.client_config import ClientConfig

    certificate, key, is_behind_tls = tls
    if (certificate is None) != (key is None):
        raise ValueError("--certificate and --key are given together")
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
        certificate=certificate,
        key=key,
        is_behind_tls=is_behind_tls,
        schema_registry=_registry(schema_registry),
    )


def _registry(url: str | None) -> str | None:
    """The address of a registry; ValueError if it is none."""
    from rockgate.console.schemas.registry import Registry

    if url is not None:
        Registry(url)
    return url


def _check_logins_are_private(settings: Settings) -> None:
    """ValueError if passwords of visitors would cross a network in clear."""
    from rockgate.gateway.net.listening.endpoint import is_loopback

    if settings.demands_login and not settings.is_secure and not is_loopback(settings.listen.host):
        raise ValueError(
            f"passwords would reach {settings.listen} in clear: give --certificate and --key, or"
            " --behind-tls if a proxy in front of the console has TLS, or listen on 127.0.0.1"
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
