"""How transactions of both kinds are named on the command line, and what is printed of each.

half:17     the half message at offset 17
anything    a transactional id of Kafka's, or the id that a half message got from its producer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rockgate.cli.client.admin.transactions import Transaction
    from rockgate.protocol.remoting.bodies.admin import HalfView

HALF: Final = "half:"
KINDS: Final = ("all", "half", "kafka")


def half_id(id_: str) -> str | None:
    """The offset in the id of a half message; None for any other id."""
    rest = id_[len(HALF) :]
    return rest if id_.startswith(HALF) and rest.isascii() and rest.isdecimal() else None


def half_fields(half: HalfView, *, is_whole: bool = False) -> dict[str, Any]:
    """A half message as programs see it."""
    from rockgate.cli.text.message_view import message_fields

    return {
        "id": f"{HALF}{half.offset}",
        "group": half.group,
        "prepared_ms": half.prepared_ms,
        "checks": half.check_count,
        "checked_ms": half.checked_ms,
        "next_check_ms": half.next_check_ms,
        "producers": half.producer_count,
        **message_fields(half.message, is_whole=is_whole),
    }


def transaction_fields(each: Transaction) -> dict[str, Any]:
    """A Kafka transaction as JSON fields."""
    return {
        "id": each.id,
        "state": each.state,
        "producer_id": each.producer_id,
        "producer_epoch": each.epoch,
        "timeout_ms": each.timeout_ms,
        "start_ms": each.start_ms,
        "partitions": [{"topic": topic, "partition": index} for topic, index in each.places],
    }
