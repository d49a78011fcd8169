"""The kinds of sequences: their players, generators and lengths."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.differential import administration, groups, remoting, transactions
from tests.differential.player import Address, Answer, Player, Step

SETTINGS = ("groups.initial_delay_ms=0", "topics.partitions=1")
"""Settings that make our server behave like the Kafka beside it."""


class Kind(NamedTuple):
    """One kind."""

    player: Callable[[Address], Player]
    sequence: Callable[[Random, int], list[Step]]
    length: int
    listener: str = "kafka"
    """The listener of ours that it uses, and so the peer to compare with."""


KINDS = {
    "transactions": Kind(transactions.TransactionPlayer, transactions.sequence, 24),
    "transactions-v1": Kind(transactions.FirstVersionPlayer, transactions.sequence, 24),
    "groups": Kind(groups.GroupPlayer, groups.sequence, 24),
    "administration": Kind(administration.AdminPlayer, administration.sequence, 20),
    "remoting": Kind(remoting.RemotingPlayer, remoting.sequence, 30, "remoting"),
}


def played(kind: Kind, address: Address, sequence: list[Step]) -> list[Answer]:
    """A server's responses to a sequence."""
    with kind.player(address) as player:
        return player.play(sequence)
