"""The flags of every command that asks a server, and running one: statuses, Ctrl-C, errors.

0    done
1    the server rejected the request, or a part of it
2    usage error
3    the server cannot be reached, or does not respond in time
130  Ctrl-C, and 143 SIGTERM, unless the command would have gone on forever: then 0
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeVar

import typer

from rockgate.cli.app import connection
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.gateway.net.address import Address
    from rockgate.sdk.client_config import ClientConfig

T = TypeVar("T")

REFUSED_STATUS: Final = 1
USAGE_STATUS: Final = 2
UNREACHABLE_STATUS: Final = 3
INTERRUPTED_STATUS: Final = 130
TERMINATED_STATUS: Final = 143

SERVER: Final = "127.0.0.1:9092"
SERVER_VARIABLE: Final = "ROCKGATE_BOOTSTRAP_SERVER"
BROKER_VARIABLE: Final = "ROCKGATE_BROKER"
TIMEOUT: Final = "10s"
CLIENT_ID: Final = "rockgate"

Server = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        envvar=SERVER_VARIABLE,
        help="Address of a broker; separate several with commas.",
    ),
]
Broker = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="HOST:PORT",
        envvar=BROKER_VARIABLE,
        help="Address of the RocketMQ listener.",
        show_default="bootstrap server's host, port 10911",
    ),
]
Timeout = Annotated[
    str, typer.Option(metavar="DURATION", help="Timeout for connecting and for each response.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Validate on the server without changing anything.")
]


def run(
    work: Callable[[Cluster], Coroutine[Any, Any, T]],
    *,
    server: str,
    timeout: str,
    is_json: bool = False,
    client_id: str = CLIENT_ID,
    is_endless: bool = False,
    broken_off: Callable[[], None] = lambda: None,
) -> T:
    """What `work` gives for the cluster at `server`; ends the command where it raises.

    Ctrl-C and SIGTERM cancel `work`, which may clean up; `broken_off` then says what was done. For
    a command that is `is_endless` they are the usual end, and the status is 0.
    """
    timeout_s, config = _seconds(timeout), connection.client_config()
    opened = partial(
        cluster_of, config, _seeds(server, config), timeout_s=timeout_s, client_id=client_id
    )

    async def main() -> T:
        async with opened() as cluster:
            return await work(cluster)

    return _run(main, is_json=is_json, is_endless=is_endless, broken_off=broken_off)


def run_remoting(
    work: Callable[[RemotingConnection], Coroutine[Any, Any, T]],
    *,
    broker: str | None,
    server: str,
    timeout: str,
    is_json: bool = False,
    broken_off: Callable[[], None] = lambda: None,
) -> T:
    """What `work` gives for RocketMQ's listener of a server; ends the command where it raises.

    `broken_off` says what was done until Ctrl-C or SIGTERM.
    """
    timeout_s, config = _seconds(timeout), connection.client_config()
    opened = partial(remoting_of, config, _remoting_address(broker, server, config), timeout_s)

    async def main() -> T:
        async with opened() as remoting:
            return await work(remoting)

    return _run(main, is_json=is_json, broken_off=broken_off)


def run_both(
    work: Callable[[Cluster, RemotingConnection], Coroutine[Any, Any, T]],
    *,
    broker: str | None,
    server: str,
    timeout: str,
    is_json: bool = False,
) -> T:
    """The same with both listeners of a server; each is connected to on first use."""
    timeout_s, config = _seconds(timeout), connection.client_config()
    kafka = partial(cluster_of, config, _seeds(server, config), timeout_s=timeout_s)
    rocketmq = partial(remoting_of, config, _remoting_address(broker, server, config), timeout_s)

    async def main() -> T:
        async with kafka() as cluster, rocketmq() as remoting:
            return await work(cluster, remoting)

    return _run(main, is_json=is_json)


def cluster_of(
    config: ClientConfig,
    seeds: Sequence[Address],
    *,
    timeout_s: float,
    client_id: str = CLIENT_ID,
) -> Cluster:
    """The brokers behind Kafka's listeners, connected to as the config says."""
    from rockgate.cli.admin import connecting

    return connecting.cluster_of(config, seeds, timeout_s=timeout_s, client_id=client_id)


def remoting_of(config: ClientConfig, address: Address, timeout_s: float) -> RemotingConnection:
    """RocketMQ's listener, connected to as the config says."""
    from rockgate.cli.admin import connecting

    return connecting.remoting_of(config, address, timeout_s)


def _seeds(server: str, config: ClientConfig) -> Sequence[Address]:
    """The addresses of Kafka's listener: as given, or those of the config."""
    from rockgate.cli.text import values

    if config.bootstrap_servers and not connection.is_server_given():
        return checked("bootstrap.servers", values.addresses, config.bootstrap_servers)
    return checked("--bootstrap-server", values.addresses, server)


def _remoting_address(broker: str | None, server: str, config: ClientConfig) -> Address:
    """The address of RocketMQ's listener: as given, or on the host of Kafka's."""
    from rockgate.cli.client.remoting.connection import PORT
    from rockgate.cli.text import values
    from rockgate.gateway.net.address import Address

    for what, text in (("--broker", broker), ("rocketmq.broker.addr", config.broker)):
        if text:
            found: list[Address] = checked(what, lambda given: values.addresses(given, PORT), text)
            return found[0]
    return Address(_seeds(server, config)[0].host, PORT)


def _seconds(timeout: str) -> float:
    from rockgate.cli.text import values

    timeout_ms = checked("--timeout", values.duration_ms, timeout)
    if timeout_ms < 1:
        usage("Invalid --timeout: expected at least 1ms.")
    return timeout_ms / 1000


def _run(
    main: Callable[[], Coroutine[Any, Any, T]],
    *,
    is_json: bool,
    is_endless: bool = False,
    broken_off: Callable[[], None] = lambda: None,
) -> T:
    import asyncio
    import signal

    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.sdk.errors import InvalidClientConfig

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await main()

    try:
        return asyncio.run(watched())
    except ClientError as error:
        fail([error], {}, is_json=is_json)
    except InvalidClientConfig as error:
        usage(str(error))
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            # The shell's prompt must not follow the terminal's ^C on one line.
            say(err=True)
        broken_off()
        raise typer.Exit(0 if is_endless else INTERRUPTED_STATUS) from None
    except asyncio.CancelledError:
        broken_off()
        raise typer.Exit(0 if is_endless else TERMINATED_STATUS) from None


def finish(
    found: Mapping[str, Any],
    errors: Iterable[ClientError] = (),
    *,
    is_json: bool,
    show: Callable[[], None],
) -> None:
    """Print the results in the requested format, and exit with a status that fits the errors."""
    from rockgate.cli.text import tables

    problems = list(errors)
    if problems:
        if not is_json:
            show()
        fail(problems, found, is_json=is_json)
    if is_json:
        tables.echo_json({**found, "errors": []})
    else:
        show()


def fail(errors: list[ClientError], found: Mapping[str, Any], *, is_json: bool) -> NoReturn:
    """Print the error and exit."""
    from rockgate.cli.client.kafka.errors import Unreachable
    from rockgate.cli.text import tables

    if is_json:
        tables.echo_json({**found, "errors": [tables.error_fields(each) for each in errors]})
    for error in errors:
        tables.echo_error(error)
    is_lost = any(isinstance(error, Unreachable) for error in errors)
    raise typer.Exit(UNREACHABLE_STATUS if is_lost else REFUSED_STATUS)


def usage(problem: str) -> NoReturn:
    """Exit with a usage error; `problem` is a sentence."""
    say(f"rockgate: {problem}", err=True)
    raise typer.Exit(USAGE_STATUS)


def checked(what: str, read: Callable[[Any], T], given: Any) -> T:
    """The parsed value of an option; a ValueError, whose text is a clause, ends the command."""
    try:
        return read(given)
    except ValueError as error:
        usage(f"Invalid {what}: {error}.")


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask for confirmation before something that cannot be undone, on a terminal."""
    if is_sure or not sys.stdin.isatty():
        return
    if not typer.confirm(question, err=True):
        say("rockgate: Cancelled. Nothing was changed.", err=True)
        raise typer.Exit(REFUSED_STATUS)
