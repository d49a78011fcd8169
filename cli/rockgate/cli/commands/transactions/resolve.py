"""`rockgate transactions resolve`: a decision in the place of a producer that makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import runner
from rockgate.cli.commands.transactions import names
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.admin.transactions import Transaction
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.protocol.remoting.bodies.admin import HalfView

EXAMPLES = """
[bold]Examples[/bold]

rockgate transactions resolve half:17 --commit

rockgate transactions resolve half:17 --rollback --yes

rockgate transactions resolve payments-writer-1 --rollback   # a Kafka transaction
"""


def resolve(
    id_: Annotated[
        str,
        typer.Argument(metavar="ID", help="half:OFFSET, transactional id or message id."),
    ],
    commit: Annotated[bool, typer.Option("--commit", help="Deliver the half message.")] = False,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback", help="Discard the half message, or abort the Kafka transaction."
        ),
    ] = False,
    yes: runner.Yes = False,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Commit or roll back a transaction for its producer. Asks for confirmation on a terminal.

    The first decision wins; a later one changes nothing and fails. A Kafka transaction can only be
    committed by its producer, so for these only --rollback works.
    """
    if commit == rollback:
        runner.usage("Give either --commit or --rollback.")
    # Two runs, so that the question comes between them and no connection waits for a person.
    found = runner.run_both(
        lambda cluster, remoting: _found(cluster, remoting, id_, is_commit=commit),
        broker=broker,
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    runner.confirm(f"{'Commit' if commit else 'Roll back'} {_text(found)}?", is_sure=yes)
    error = runner.run_both(
        lambda cluster, remoting: _resolve(cluster, remoting, found, is_commit=commit),
        broker=broker,
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    done = "committed" if commit else "rolled back"
    row: dict[str, Any] = {"id": _id(found), "outcome": done if error is None else None}
    runner.finish(
        {"transactions": [row]},
        [error] if error else [],
        is_json=json,
        show=lambda: None if error else say(f"{done.capitalize()} {_text(found)}."),
    )


async def _found(
    cluster: Cluster, remoting: RemotingConnection, id_: str, *, is_commit: bool
) -> HalfView | Transaction:
    from rockgate.cli.client.kafka.errors import Missed
    from rockgate.cli.commands.transactions.show import find
    from rockgate.protocol.remoting.bodies.admin import HalfView

    found = await find(cluster, remoting, id_)
    if found is None:
        raise Missed(id_, "already decided, or never existed. Nothing was changed")
    if isinstance(found, HalfView):
        return found
    if is_commit:
        raise Missed(id_, "a Kafka transaction can only be committed by its producer")
    if not found.is_open:
        raise Missed(id_, f"no open transaction ({found.state}). Nothing was changed")
    return found


async def _resolve(
    cluster: Cluster,
    remoting: RemotingConnection,
    found: HalfView | Transaction,
    *,
    is_commit: bool,
) -> ClientError | None:
    from rockgate.cli.client.admin import transactions
    from rockgate.cli.client.kafka.errors import Missed
    from rockgate.cli.client.remoting import halves
    from rockgate.protocol.remoting.bodies.admin import HalfView

    if not isinstance(found, HalfView):
        await transactions.terminate(cluster, found)
        return None
    done = await halves.resolve(remoting, str(found.offset), is_commit=is_commit)
    if done.is_resolved:
        return None
    return Missed(_id(found), "already decided. Nothing was changed")


def _id(found: HalfView | Transaction) -> str:
    from rockgate.protocol.remoting.bodies.admin import HalfView

    return f"{names.HALF}{found.offset}" if isinstance(found, HalfView) else found.id


def _text(found: HalfView | Transaction) -> str:
    from rockgate.cli.text.values import plural
    from rockgate.protocol.remoting.bodies.admin import HalfView

    if isinstance(found, HalfView):
        return f"{_id(found)} (group {found.group}, topic {found.message.topic})"
    return f"{found.id} ({plural(len(found.places), 'partition')}, producer {found.producer_id})"
