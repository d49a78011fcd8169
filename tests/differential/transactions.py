"""Sequences of transactional producers: two ids, two instances of each, two partitions, a group.

    init TID SLOT KEEP        InitProducerId; KEEP: with the slot's current id and epoch
    add SLOT PARTITION        AddPartitionsToTxn
    produce SLOT PARTITION GAP   a record, GAP sequences ahead (0: the next, -1: the last again)
    offsets SLOT              AddOffsetsToTxn
    pend SLOT OFFSET          TxnOffsetCommit
    end SLOT COMMIT           EndTxn
    commit OFFSET             OffsetCommit without a member
    forget                    OffsetDelete
    committed STABLE          OffsetFetch
    read PARTITION COMMITTED  Fetch: the visible values
    describe TID              DescribeTransactions

`VERSION` 1 and 2 are Kafka's two transaction protocols.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any, ClassVar

from tests.differential import committing
from tests.differential.player import Answer, KafkaPlayer, Step, code
from tests.waiting import wait_until

from rockgate.protocol.kafka.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from rockgate.protocol.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from rockgate.protocol.kafka.messages.end_txn import EndTxnRequest, EndTxnResponse
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from rockgate.protocol.kafka.records.batch import split
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records

TOPIC = "t"
GROUP = "g"
PARTITIONS = 2
IDS = ("a", "b")
SLOTS = ("a1", "a2", "b1")
TIMEOUT_MS = 60_000
VERSIONS = {
    1: {"produce": 11, "pend": 4, "offsets": 3, "end": 4, "add": 3},
    2: {"produce": 12, "pend": 5, "offsets": 4, "end": 5, "add": 3},
}


class _Slot:
    """A producer as its client sees it."""

    def __init__(self) -> None:
        self.id, self.epoch = -1, -1
        self.next: dict[int, int] = {}

    def become(self, id_: int, epoch: int) -> None:
        if (id_, epoch) != (self.id, self.epoch):
            self.id, self.epoch, self.next = id_, epoch, {}


class TransactionPlayer(KafkaPlayer):
    """Plays these steps; `version` is the transaction protocol."""

    version = 2

    def begin(self) -> None:
        self.topic, self.group = self.name(TOPIC), self.name(GROUP)
        self._slots = {slot: _Slot() for slot in SLOTS}
        self._sent = 0
        self.find_coordinator(0, self.group)
        self.find_coordinator(1, self.name(IDS[0]))
        committing.create_topic(self, self.topic, PARTITIONS)

    # Steps

    def init(self, tid: str, slot: str, keep: bool) -> Answer:
        known = self._slots[slot]
        request = InitProducerIdRequest(
            transactional_id=self.name(tid),
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=known.id if keep else -1,
            producer_epoch=known.epoch if keep else -1,
        )

        def ask() -> tuple[int, Answer]:
            given = self.wire.ask(request, InitProducerIdResponse, 5)
            if given.error_code:
                return given.error_code, [code(given.error_code)]
            known.become(given.producer_id, given.producer_epoch)
            return 0, ["NONE", self.symbol("p", given.producer_id), given.producer_epoch]

        return self.settled(ask)

    def add(self, slot: str, partition: int) -> Answer:
        known = self._slots[slot]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name(slot[0]),
            v3_and_below_producer_id=known.id,
            v3_and_below_producer_epoch=known.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[partition])],
        )

        def ask() -> tuple[int, Answer]:
            answer = self.wire.ask(request, AddPartitionsToTxnResponse, self._version("add"))
            (topic,) = answer.results_by_topic_v3_and_below
            number = topic.results_by_partition[0].partition_error_code
            return number, code(number)

        return self.settled(ask)

    def produce(self, slot: str, partition: int, gap: int) -> Answer:
        known = self._slots[slot]
        sequence = known.next.get(partition, 0) + gap
        if sequence < 0:
            return "nothing"
        self._wait_for_ends()
        value = b"%d" % self._sent
        self._sent += 1
        batch = build_batch(
            [Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=value)],
            base_offset=0,
            producer_id=known.id,
            producer_epoch=known.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.name(slot[0]),
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )

        def ask() -> tuple[int, Answer]:
            answer = self.wire.ask(request, ProduceResponse, self._version("produce"))
            number = answer.responses[0].partition_responses[0].error_code
            if not number and gap >= 0:
                known.next[partition] = sequence + 1
            return number, code(number)

        return self.settled(ask)

    def offsets(self, slot: str) -> Answer:
        def ask() -> tuple[int, Answer]:
            request = AddOffsetsToTxnRequest(**self._identity(slot), group_id=self.group)
            answer = self.wire.ask(request, AddOffsetsToTxnResponse, self._version("offsets"))
            return answer.error_code, code(answer.error_code)

        return self.settled(ask)

    def pend(self, slot: str, offset: int) -> Answer:
        self._wait_for_ends()
        part = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            **self._identity(slot),
            group_id=self.group,
            member_id="",
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[part])],
        )

        def ask() -> tuple[int, Answer]:
            answer = self.wire.ask(request, TxnOffsetCommitResponse, self._version("pend"))
            number = answer.topics[0].partitions[0].error_code
            return number, code(number)

        return self.settled(ask)

    def end(self, slot: str, commit: bool) -> Answer:
        known = self._slots[slot]
        request = EndTxnRequest(**self._identity(slot), committed=commit)

        def ask() -> tuple[int, Answer]:
            answer = self.wire.ask(request, EndTxnResponse, self._version("end"))
            if answer.error_code:
                return answer.error_code, [code(answer.error_code)]
            if self.version == 1:
                return 0, ["NONE"]
            known.become(answer.producer_id, answer.producer_epoch)
            return 0, ["NONE", self.symbol("p", answer.producer_id), answer.producer_epoch]

        return self.settled(ask)

    def commit(self, offset: int) -> Answer:
        self._wait_for_ends()
        return committing.commit(self, self.group, self.topic, offset)

    def forget(self) -> Answer:
        self._wait_for_ends()
        return committing.forget(self, self.group, self.topic)

    def committed(self, stable: bool) -> Answer:
        self._wait_for_ends()
        return committing.committed(self, self.group, self.topic, is_stable=stable)

    def read(self, partition: int, committed: bool) -> Answer:
        self._wait_for_ends()
        at = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=int(committed),
            topics=[FetchTopic(topic=self.topic, partitions=[at])],
            forgotten_topics_data=[],
        )
        answer = self.wire.ask(request, FetchResponse, 12)
        (found,) = answer.responses[0].partitions
        if found.error_code:
            return code(found.error_code)
        return _values(found, is_committed=committed)

    def describe(self, tid: str) -> Answer:
        self._wait_for_ends()
        state = self._state(tid)
        if state.error_code:
            return [code(state.error_code)]
        # Kafka adds the partition of its offsets topic, which we do not have.
        own = [topic for topic in state.topics if topic.topic == self.topic]
        parts = sorted(number for topic in own for number in topic.partitions)
        producer = self.symbol("p", state.producer_id)
        return [state.transaction_state, producer, state.producer_epoch, parts]

    # Shared by steps

    def _version(self, step: str) -> int:
        return VERSIONS[self.version][step]

    def _identity(self, slot: str) -> dict[str, Any]:
        known = self._slots[slot]
        return {
            "transactional_id": self.name(slot[0]),
            "producer_id": known.id,
            "producer_epoch": known.epoch,
        }

    def _state(self, tid: str) -> TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[self.name(tid)])
        answer = self.wire.ask(request, DescribeTransactionsResponse, 0)
        return answer.transaction_states[0]

    def _wait_for_ends(self) -> None:
        """Wait for markers: Kafka writes them after its response, and other writes may precede."""

        def are_ended() -> bool:
            return not any(self._state(tid).transaction_state.startswith("Prepare") for tid in IDS)

        wait_until(are_ended, "every transaction that ended is complete")

    steps: ClassVar = {
        "init": init,
        "add": add,
        "produce": produce,
        "offsets": offsets,
        "pend": pend,
        "end": end,
        "commit": commit,
        "forget": forget,
        "committed": committed,
        "read": read,
        "describe": describe,
    }


class FirstVersionPlayer(TransactionPlayer):
    """Plays these steps like clients before Kafka 4.0."""

    version = 1


def _values(found: Any, *, is_committed: bool) -> list[int]:
    """The values of a response that a consumer returns."""
    starts = sorted(
        (each.first_offset, each.producer_id) for each in found.aborted_transactions or ()
    )
    aborted: set[int] = set()
    values: list[int] = []
    for header, batch in split(memoryview(found.records or b"")):
        while starts and starts[0][0] <= header.last_offset:
            aborted.add(starts.pop(0)[1])
        if header.is_control:
            aborted.discard(header.producer_id)
        elif not (is_committed and header.is_transactional and header.producer_id in aborted):
            values += [int(record.value or b"-1") for record in read_records(batch)]
    return values


def sequence(random: Random, length: int) -> list[Step]:
    """A sequence that is mostly valid, and sometimes not."""
    steps: list[Step] = [["init", "a", "a1", False]]
    while len(steps) < length:
        slot = random.choice(("a1", "a1", "a1", "a2", "b1"))
        steps += random.choice(_STEPS)(random, slot)
    closing: list[Step] = [["describe", tid] for tid in IDS]
    closing += [["read", number, is_committed] for number in (0, 1) for is_committed in (0, 1)]
    return [*steps, *closing, ["committed", True]]


_STEPS = (
    lambda random, slot: [["init", slot[0], slot, random.random() < 0.3]],
    lambda random, slot: [["add", slot, random.randrange(PARTITIONS)]],
    lambda random, slot: [
        ["add", slot, at := random.randrange(PARTITIONS)],
        ["produce", slot, at, random.choice((0, 0, 0, 0, -1, 1))],
    ],
    lambda random, slot: [["produce", slot, random.randrange(PARTITIONS), 0]],
    lambda random, slot: [["offsets", slot], ["pend", slot, random.randrange(100)]],
    lambda random, slot: [["pend", slot, random.randrange(100)]],
    lambda random, slot: [["end", slot, random.random() < 0.6]],
    lambda random, slot: [["end", slot, random.random() < 0.6]],
    lambda random, slot: [["commit", random.randrange(100)]],
    lambda random, slot: [["forget"]] if random.random() < 0.4 else [["describe", slot[0]]],
    lambda random, slot: [["committed", random.random() < 0.5]],
    lambda random, slot: [["read", random.randrange(PARTITIONS), random.random() < 0.7]],
)
