"""`rockgate secure init`: an authority, a certificate, an administrator and files for clients."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rockgate.cli.app import runner, server_options
from rockgate.cli.commands.secure import contents, folder
from rockgate.cli.commands.secure.folder import Folder, FolderError
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.gateway.net.address import Address
    from rockgate.gateway.security.tls.authority import Authority

EXAMPLES = """
[bold]Examples[/bold]

rockgate secure init

rockgate secure init --host kafka.example --host 10.0.0.7 --data-dir /srv/rockgate

rockgate secure init --dir secure --force
"""
START_STATUS: Final = 1
PASSWORD_BYTES: Final = 24
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
PORTS: Final = {"kafka": 9092, "remoting": 10911, "namesrv": 9876, "http": 8080}
_USER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LOOPBACK: Final = "127.0.0.1"
_EVERYWHERE: Final = "0.0.0.0"

Dir = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder for the files.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help="Name or address that clients connect to; the first is advertised; repeatable.",
        show_default="only this machine",
    ),
]


def _address(help_: str, default: str) -> Any:
    return typer.Option(metavar="HOST:PORT", help=help_, show_default=default)


def init(
    dir_: Dir = Path("secure"),
    host: Hosts = None,
    data_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="Data directory of the server.")
    ] = Path("data"),
    admin: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the administrator.")
    ] = "admin",
    kafka: Annotated[str | None, _address("Kafka listener.", "port 9092")] = None,
    remoting: Annotated[str | None, _address("RocketMQ listener.", "port 10911")] = None,
    namesrv: Annotated[str | None, _address("RocketMQ name server.", "port 9876")] = None,
    http: Annotated[str | None, _address("HTTP.", "127.0.0.1:8080")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing files, with a new password.")
    ] = False,
    json: runner.Json = False,
) -> None:
    """Set up a secured server: TLS, logins, signatures, and an administrator.

    Makes a certificate authority, a server certificate, an administrator with a random password in
    the log of the server, settings for `rockgate serve`, and files for clients. It can be run
    again: what exists stays, what is missing is added.
    """
    place = Folder(dir_)
    layout = contents.Layout(
        folder=place.path,
        data_dir=data_dir.absolute(),
        host=host[0] if host else _LOOPBACK,
        **_listeners(bool(host), kafka=kafka, remoting=remoting, namesrv=namesrv, http=http),
    )
    runner.checked("--admin", _user_name, admin)
    for each in host or ():
        runner.checked("--host", _host, each)
    hosts = [*dict.fromkeys([*(host or ()), *LOCAL])]
    try:
        if force:
            _refuse_if_in_use(layout.data_dir)
        place.make()
        _certificates(place, hosts, replaces=force)
        place.write(
            {
                folder.SETTINGS: contents.settings(layout),
                folder.ROCKETMQ_TLS: contents.tls_of_rocketmq(layout),
            },
            replaces=force,
        )
        user = _client_files(place, layout, admin, replaces=force)
        is_created = _administrator(place, user, replaces=force)
    except FolderError as error:
        server_options.fail([str(error)], START_STATUS)
    _finish(place, layout, user, is_created, json)


def _user_name(text: str) -> None:
    if _USER_NAME.fullmatch(text) is None:
        raise ValueError(f"expected letters, digits, _, - and ., got {text!r}")


def _host(text: str) -> None:
    from rockgate.gateway.net.address import Address

    try:
        found = Address.parse(f"[{text}]:1" if ":" in text else f"{text}:1")
    except ValueError:
        raise ValueError(f"expected a host name or an IP address, got {text!r}") from None
    if found.is_wildcard:
        raise ValueError(
            f"clients cannot connect to {text}; give a name or address of this machine"
        )


def _listeners(is_public: bool, **given: str | None) -> dict[str, Address]:
    """The addresses to bind: everywhere for other machines, but HTTP only here."""
    from rockgate.gateway.net.address import Address

    found = {}
    for name, text in given.items():
        if text is None:
            host = _EVERYWHERE if is_public and name != "http" else _LOOPBACK
            found[name] = Address(host, PORTS[name])
            continue
        found[name] = runner.checked(f"--{name}", Address.parse, text)
        if found[name].port == 0 and not found[name].is_closed:
            runner.usage(f"--{name} needs the port that clients connect to, not 0.")
    return found


def _refuse_if_in_use(data_dir: Path) -> None:
    """Before anything is replaced that a server uses."""
    from rockgate.gateway.runtime.datadir import refuse_if_in_use
    from rockgate.gateway.runtime.errors import StartError

    try:
        refuse_if_in_use(data_dir)
    except StartError as error:
        raise FolderError(f"{error} Nothing was changed.") from None


def _certificates(place: Folder, hosts: list[str], *, replaces: bool) -> None:
    """The authority's and the server's, unless they are there."""
    from rockgate.gateway.security.tls import authority as tls

    known = {} if replaces else {name: place.read(name) for name in _AUTHORITY}
    present = [name for name, content in known.items() if content is not None]
    if len(present) == 1:
        raise FolderError(
            f"{place.file(present[0])} exists, but the other file of the authority does not."
            " Restore it, or replace everything with --force."
        )
    authority = (
        read_authority(place)
        if present
        else tls.Authority.new(f"rockgate {secrets.token_hex(4)}", tls.now_utc())
    )
    made = authority.pem
    place.write(
        {folder.AUTHORITY_KEY: made.key, folder.AUTHORITY: made.certificate}, replaces=replaces
    )
    pem = None if replaces else place.read(folder.CERTIFICATE)
    if pem is None or place.read(folder.KEY) is None:
        issued = _issued(authority, hosts)
        # One without the other is of no use.
        place.write({folder.KEY: issued.key, folder.CERTIFICATE: issued.certificate}, replaces=True)
        return
    place.found += [folder.KEY, folder.CERTIFICATE]
    missing = [each for each in hosts if each not in tls.hosts_of(pem)]
    if missing:
        say(
            f"rockgate: The certificate is not for {', '.join(missing)}. Issue another with:"
            f" rockgate secure renew --dir {place.path}"
            + "".join(f" --host {each}" for each in missing),
            err=True,
        )
    elif tls.expiry_of(pem) <= tls.now_utc():
        say(
            f"rockgate: The certificate has expired. {_RENEWAL.format(dir=place.path)}",
            err=True,
        )


_RENEWAL: Final = "Renew it with: rockgate secure renew --dir {dir}"
_AUTHORITY: Final = (folder.AUTHORITY_KEY, folder.AUTHORITY)


def read_authority(place: Folder) -> Authority:
    """The authority of a folder."""
    from rockgate.gateway.security.tls import authority as tls

    key, certificate = (place.read(name) for name in _AUTHORITY)
    if key is None or certificate is None:
        raise FolderError(
            f"{place.path} has no certificate authority. Make one with `rockgate secure init`."
        )
    try:
        return tls.Authority.read(certificate, key)
    except tls.InvalidCertificate as error:
        raise FolderError(
            f"Cannot use {place.file(folder.AUTHORITY)}: {error}. Bring the right files back, or"
            " replace everything with `rockgate secure init --force`."
        ) from None


def _issued(authority: Authority, hosts: list[str]) -> Any:
    from rockgate.gateway.security.tls import authority as tls

    return runner.checked("--host", lambda names: authority.issue(names, tls.now_utc()), hosts)


def _client_files(place: Folder, layout: contents.Layout, name: str, *, replaces: bool) -> str:
    """Write the files of the administrator, who is that of the file that is there."""
    known = None if replaces else place.read(folder.CLIENT)
    if known is not None:
        user, password = _login(place)
    else:
        user, password = name, secrets.token_urlsafe(PASSWORD_BYTES)
    place.write(contents.client_files(layout, user, password), replaces=replaces)
    return user


def _login(place: Folder) -> tuple[str, str]:
    from rockgate.sdk.client_config import ClientConfig
    from rockgate.sdk.errors import InvalidClientConfig

    try:
        config = ClientConfig.find(place.file(folder.CLIENT), {})
    except InvalidClientConfig as error:
        raise FolderError(str(error)) from None
    if not (config.username and config.password):
        raise FolderError(
            f"{place.file(folder.CLIENT)} has no user name or no password. Remove it, or replace"
            " everything with --force."
        )
    return config.username, config.password


def _administrator(place: Folder, user: str, *, replaces: bool) -> bool:
    """Put the administrator into the log, unless it is there; whether it was put."""
    gathered = server_options.gathered(config=place.file(folder.SETTINGS), flags={}, pairs=())

    from rockgate.cli.commands.users.bootstrap import operator
    from rockgate.gateway.compose.offline.admin_user import closed_server
    from rockgate.gateway.runtime.errors import DirectoryInUse, StartError
    from rockgate.gateway.runtime.logs import to_stderr

    try:
        with to_stderr("warning"), closed_server(gathered.config, operator()) as server:
            if user in server and not replaces:
                return False
            server.put_admin(user, _login(place)[1], can_sign=True)
            return True
    except DirectoryInUse as error:
        if folder.CLIENT in place.written:
            raise FolderError(
                f"{error} The administrator was not created: stop the server, and run the command"
                " again."
            ) from None
        return False
    except StartError as error:
        raise FolderError(str(error)) from None


def _finish(
    place: Folder, layout: contents.Layout, user: str, is_created: bool, is_json: bool
) -> None:
    from rockgate.gateway.security.tls import authority as tls

    rows = [
        {"path": str(place.file(name)), "is_written": name in place.written}
        for name in sorted({*place.written, *place.found})
    ]
    pem = place.read(folder.CERTIFICATE) or b""
    until = tls.expiry_of(pem)
    found = {
        "files": rows,
        "users": [{"name": user, "is_created": is_created}],
        "certificates": [{"hosts": tls.hosts_of(pem), "expires_ms": int(until.timestamp() * 1000)}],
    }

    def show() -> None:
        if place.written:
            say(f"Wrote {', '.join(place.written)} to {place.path}.")
        if place.found:
            say(f"Not changed: {', '.join(place.found)}.")
        if is_created:
            say(f"Created super user {user}; the password is in {folder.CLIENT}.")
        say(f"The certificate is valid until {until:%Y-%m-%d}. {_RENEWAL.format(dir=place.path)}")
        for line in _next_steps(place, layout):
            say(line)

    runner.finish(found, is_json=is_json, show=show)


def _next_steps(place: Folder, layout: contents.Layout) -> list[str]:
    client = place.file(folder.CLIENT)
    server = layout.dialled(layout.kafka)
    return [
        "",
        "Start the server:",
        f"  rockgate serve --config {place.file(folder.SETTINGS)}",
        "Use it from another terminal, with this command line or with Kafka's:",
        f"  export ROCKGATE_CLIENT_CONFIG={client}",
        "  rockgate topics create orders",
        f"  kafka-topics.sh --bootstrap-server {server} --command-config {client} --list",
        f"Give others {folder.AUTHORITY}, and a user each:",
        "  rockgate users create shop --rocketmq",
        "  rockgate acls add --allow-principal User:shop --producer --topic orders",
        f"Keep {folder.AUTHORITY_KEY}, {folder.KEY} and {folder.CLIENT} to yourself.",
    ]
