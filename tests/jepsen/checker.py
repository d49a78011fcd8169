"""The checks of Jepsen's Kafka workload, over a history.

aborted read          a value of an aborted transaction was read
precommitted read     a value was read before its transaction was ended
inconsistent offset   one offset had two values
duplicate             one value had two offsets
lost write            a committed value is missing at the end
torn transaction      some values of a transaction exist at the end, and some do not
nonmonotonic poll     a consumer went backwards
poll skip             a consumer skipped a value that exists at the end
nonmonotonic send     a worker's later value has a lower offset than an earlier one
cycle                 transactions read each other's values in a circle
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.jepsen.history import History, Outcome, Read, Transaction


class Violation(NamedTuple):
    """A violation of a guarantee."""

    kind: str
    what: str


def check(history: History) -> list[Violation]:
    """Return all violations in a history."""
    checks = (_reads, _offsets, _writes, _polls, _sends, _cycles)
    return [violation for each in checks for violation in each(history)]


def _all_reads(history: History) -> Iterator[Read]:
    for transaction in history.transactions:
        for poll in transaction.polls:
            yield from poll.reads
    yield from history.final


def _writers(history: History) -> dict[int, Transaction]:
    return {send.value: each for each in history.transactions for send in each.sends}


def _reads(history: History) -> Iterator[Violation]:
    writers = _writers(history)
    for read in _all_reads(history):
        writer = writers.get(read.value)
        if writer is None:
            yield Violation("aborted read", f"{read} was never sent")
        elif writer.outcome is Outcome.FAIL:
            yield Violation("aborted read", f"{read} of an aborted transaction")
    for transaction in history.transactions:
        for poll in transaction.polls:
            for read in poll.reads:
                writer = writers.get(read.value)
                if writer is not None and poll.ended < writer.ending:
                    yield Violation("precommitted read", f"{read} was read too early")


def _offsets(history: History) -> Iterator[Violation]:
    values: dict[tuple[int, int], set[int]] = defaultdict(set)
    places: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for read in _all_reads(history):
        values[read.partition, read.offset].add(read.value)
        places[read.value].add((read.partition, read.offset))
    for transaction in history.transactions:
        for send in transaction.sends:
            if send.offset >= 0:
                values[send.partition, send.offset].add(send.value)
    for place, found in values.items():
        if len(found) > 1:
            yield Violation("inconsistent offset", f"{place} has {sorted(found)}")
    for value, found_at in places.items():
        if len(found_at) > 1:
            yield Violation("duplicate", f"{value} is at {sorted(found_at)}")


def _writes(history: History) -> Iterator[Violation]:
    final = {read.value for read in history.final}
    for transaction in history.transactions:
        there = [send.value in final for send in transaction.sends]
        if transaction.outcome is Outcome.OK and not all(there):
            yield Violation("lost write", f"{transaction.sends} were committed")
        elif any(there) and not all(there):
            yield Violation("torn transaction", f"{transaction.sends}: {there}")


def _polls(history: History) -> Iterator[Violation]:
    final: dict[int, list[int]] = defaultdict(list)
    for read in history.final:
        final[read.partition].append(read.offset)
    rows: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for transaction in history.transactions:
        for poll in transaction.polls:
            for read in poll.reads:
                key = transaction.worker, transaction.session, read.partition
                rows[key].append(read.offset)
    for (worker, session, partition), offsets in rows.items():
        there = sorted(final[partition])
        for before, after in pairwise(offsets):
            who = f"worker {worker}.{session} in partition {partition}: {before}, {after}"
            if after <= before:
                yield Violation("nonmonotonic poll", who)
            elif any(before < offset < after for offset in there):
                yield Violation("poll skip", who)


def _sends(history: History) -> Iterator[Violation]:
    last: dict[tuple[int, int], int] = {}
    for transaction in history.transactions:
        for send in transaction.sends:
            if send.offset < 0:
                continue
            key = transaction.worker, send.partition
            if send.offset <= last.get(key, -1):
                yield Violation("nonmonotonic send", f"{send} behind {last[key]}")
            last[key] = send.offset


def _cycles(history: History) -> Iterator[Violation]:
    """Find cycles of committed transactions in which each read a value of the previous one."""
    numbers = {id(each): at for at, each in enumerate(history.transactions)}
    writers = _writers(history)
    readers: dict[int, set[int]] = defaultdict(set)
    for transaction in history.transactions:
        if transaction.outcome is not Outcome.OK:
            continue
        for poll in transaction.polls:
            for read in poll.reads:
                writer = writers.get(read.value)
                if writer is not None and writer is not transaction:
                    readers[numbers[id(writer)]].add(numbers[id(transaction)])
    state: dict[int, int] = {}
    for start in list(readers):
        if state.get(start):
            continue
        stack = [(start, iter(sorted(readers.get(start, ()))))]
        state[start] = 1
        while stack:
            node, following = stack[-1]
            for reader in following:
                if state.get(reader) == 1:
                    path = [number for number, _ in stack]
                    yield Violation("cycle", f"{path[path.index(reader) :]} read each other")
                elif not state.get(reader):
                    state[reader] = 1
                    stack.append((reader, iter(sorted(readers.get(reader, ())))))
                    break
            else:
                state[node] = 2
                stack.pop()
