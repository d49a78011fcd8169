"""How a command connects: the options for it, which every client command has, and what they give.

Commands do not declare these options: they are added to each that takes the address of a server,
when it is loaded. A password is never one of them: everyone on a machine can list the arguments of
its processes, and a shell remembers them. `--password` exists to say so.
"""

from __future__ import annotations

import inspect
import stat
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from rockgate.cli.app.terminal import ask_secret
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.sdk.client_config import ClientConfig

USAGE_STATUS: Final = 2
FILE_VARIABLE: Final = "ROCKGATE_CLIENT_CONFIG"
ADDRESSES: Final = ("bootstrap_server", "broker")
"""The parameters that make a function a client's command."""
PASSWORD_REASON: Final = (
    "A password on the command line can be read by every user of this machine, and stays in the"
    " shell's history. Leave it out to be asked for it, or set ROCKGATE_CLIENT_SASL_PASSWORD, or"
    " sasl.password in the file of --client-config."
)


def _refuse(given: str | None) -> None:
    if given is not None:
        say(f"rockgate: {PASSWORD_REASON}", err=True)
        raise typer.Exit(USAGE_STATUS)


_OPTIONS: Final[dict[str, Any]] = {
    "client_config": Annotated[
        str | None,
        typer.Option(
            "--client-config",
            metavar="FILE",
            envvar=FILE_VARIABLE,
            help="Properties of a Kafka client: servers, TLS and login.",
        ),
    ],
    "username": Annotated[
        str | None,
        typer.Option(
            "--username", metavar="NAME", help="Log in as this user; asks for the password."
        ),
    ],
    "password": Annotated[str | None, typer.Option("--password", hidden=True, callback=_refuse)],
}
_CONTEXT: Final = "connection_context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says about the connection."""

    file: str | None = None
    username: str | None = None
    is_server_given: bool = True
    """Whether the address of Kafka's listener was given, here or in the environment."""


_given: ContextVar[Given] = ContextVar("given", default=Given())  # noqa: B039 # it is frozen
_config: ContextVar[ClientConfig | None] = ContextVar("config", default=None)
"""Found once for a command, which may connect twice: a password is asked for once."""


def with_connection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options, if it is a client's."""
    signature = inspect.signature(command)
    is_client = any(name in signature.parameters for name in ADDRESSES)
    if not is_client or _CONTEXT in signature.parameters:
        return command

    @wraps(command)
    def connecting(**arguments: Any) -> Any:
        context = arguments.pop(_CONTEXT)
        _given.set(
            Given(
                file=arguments.pop("client_config"),
                username=arguments.pop("username"),
                is_server_given=_is_given(context, "bootstrap_server"),
            )
        )
        arguments.pop("password")
        _config.set(None)
        return command(**arguments)

    hints = get_type_hints(command, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [each.replace(kind=kind) for each in signature.parameters.values()]
    added = [inspect.Parameter(name, kind, default=None) for name in _OPTIONS]
    added.append(inspect.Parameter(_CONTEXT, kind))
    connecting.__annotations__ = {**hints, **_OPTIONS, _CONTEXT: typer.Context}
    every = [
        each.replace(annotation=connecting.__annotations__[each.name]) for each in [*own, *added]
    ]
    connecting.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    return connecting


def add_connection(app: typer.Typer) -> None:
    """Add the options to all commands of an application."""
    for each in app.registered_commands:
        if each.callback is not None:
            each.callback = with_connection(each.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_connection(group.typer_instance)


def client_config() -> ClientConfig:
    """How this command connects; exits where that cannot be used. May ask for a password."""
    known = _config.get()
    if known is None:
        known = _found()
        _config.set(known)
    return known


def _found() -> ClientConfig:
    from rockgate.sdk.errors import InvalidClientConfig

    given = _given.get()
    try:
        config = config_of(given.file, given.username)
        if given.username and not config.has_login and not config.access_key:
            raise InvalidClientConfig(
                f"--username has no effect: security.protocol is {config.security_protocol}, which"
                f" has no login. Set it to SASL_{config.security_protocol}."
            )
        _warn_of_readers(given.file, config)
        return _with_password(config) if config.lacks_password else config
    except InvalidClientConfig as error:
        say(f"rockgate: {error}", err=True)
        raise typer.Exit(USAGE_STATUS) from None


def config_of(file: str | None, username: str | None) -> ClientConfig:
    """What file, environment and `--username` say together."""
    from rockgate.sdk.client_config import ClientConfig

    return ClientConfig.find(file, username=username)


def is_server_given() -> bool:
    """Whether the address of Kafka's listener was given, other than by the file."""
    return _given.get().is_server_given


def _with_password(config: ClientConfig) -> ClientConfig:
    password = ask_secret(f"Password of {config.username}: ")
    if password is None:
        from rockgate.sdk.errors import InvalidClientConfig

        raise InvalidClientConfig(
            f"There is no password for {config.username}, and no terminal to ask for it. Set"
            " ROCKGATE_CLIENT_SASL_USERNAME and ROCKGATE_CLIENT_SASL_PASSWORD, or sasl.username and"
            " sasl.password in the file of --client-config."
        )
    return config.with_password(password)


def _warn_of_readers(file: str | None, config: ClientConfig) -> None:
    """Warn of a file with a password that others can read."""
    if not file or not (config.password or config.secret_key):
        return
    mode = Path(file).stat().st_mode
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        say(
            f"rockgate: Other users of this machine can read the password in {file}. Run:"
            f" chmod 600 {file}",
            err=True,
        )


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and not source.name.startswith("DEFAULT")
