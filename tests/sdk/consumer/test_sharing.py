"""How members split queues, each on its own, on a virtual clock: strategies, and what fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.sdk.consumer.memory_cluster import (
    BEGINNING,
    Heard,
    MemoryCluster,
)
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.protocol.remoting.command import Command
from rockgate.sdk import (
    Averagely,
    Consumer,
    ConsumerSettings,
    InCircles,
    Message,
    Producer,
    Queue,
)

BUSY = Command(1, remark="not now")
A0, A1, B0, B1 = Queue("t", "a", 0), Queue("t", "a", 1), Queue("t", "b", 0), Queue("t", "b", 1)


def of_topic(consumer: Consumer, topic: str = "t") -> list[Queue]:
    return [queue for queue in consumer.queues if queue.topic == topic]


@pytest.mark.row("C-15")
def test_members_compute_the_same_split_each_on_its_own_from_sorted_lists() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"b": 3, "a": 4})
        names = ["three", "one", "two"]
        members: list[Heard] = []
        for name in names:
            client = await cluster.client(name).open()
            members.append(await Heard(cluster, client).__aenter__())
        await pass_time(25)
        # The broker's list is in no order; by name it is one, three, two.
        held = {name: of_topic(each.consumer) for name, each in zip(names, members, strict=True)}
        everything = sorted(queue for queues in held.values() for queue in queues)
        assert everything == [
            Queue("t", *each)
            for each in [("a", n) for n in range(4)] + [("b", n) for n in range(3)]
        ]
        assert held["one"] == everything[:3]
        assert held["three"] == everything[3:5]
        assert held["two"] == everything[5:]
        for each in members:
            await each.consumer.close()

    run(scenario())


@pytest.mark.row("C-15")
@pytest.mark.parametrize("fault", ["members", "strategy"])
def test_missing_facts_or_a_failing_strategy_leave_the_assignment_as_it_is(fault: str) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        is_failing = False

        class Failing(Averagely):
            def allocate(
                self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
            ) -> list[Queue]:
                if is_failing:
                    raise ZeroDivisionError
                return super().allocate(group, member, queues, members)

        settings = replace(BEGINNING, allocation=Failing())
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            before = heard.consumer.queues
            if fault == "members":
                cluster["a"].refusing[38] = BUSY
            else:
                is_failing = True
            # Another member, to which half of the queues would go.
            cluster.members["g"]["zz"] = next(iter(cluster.members["g"].values()))
            cluster.notify("g")
            await pass_time(50)
            assert heard.consumer.queues == before
            cluster["a"].put("t", 1, b"still here")
            await settle()
            assert heard.bodies == [b"still here"]
            is_failing = False
            cluster["a"].refusing.clear()
            await pass_time(21)
            assert of_topic(heard.consumer) == [A0]

    run(scenario())


@pytest.mark.row("C-16")
@pytest.mark.parametrize(
    ("settings", "mine"),
    [
        (BEGINNING, [A0, A1]),
        (replace(BEGINNING, allocation=InCircles()), [A0, B0]),
    ],
)
def test_the_default_spreads_evenly_and_another_strategy_may_be_chosen(
    settings: ConsumerSettings, mine: list[Queue]
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2, "b": 2})
        async with (
            cluster.client("one") as one,
            cluster.client("two") as two,
            Heard(cluster, one, settings=settings) as first,
            Heard(cluster, two, settings=settings) as second,
        ):
            await pass_time(25)
            assert of_topic(first.consumer) == mine
            assert sorted(mine + of_topic(second.consumer)) == [A0, A1, B0, B1]

    run(scenario())


class ByParity:
    """An application's own strategy: even queues to the first member, odd ones to the last."""

    name = "PARITY"

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        owners = (members[0], members[-1])
        return [queue for queue in queues if owners[queue.id % 2] == member]


@pytest.mark.row("API-8", "C-16")
def test_a_strategy_of_the_applications_own_is_used_by_every_member_alike() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 3, "b": 2})
        settings = replace(BEGINNING, allocation=ByParity())
        async with (
            cluster.client("one") as one,
            cluster.client("two") as two,
            Heard(cluster, one, settings=settings) as first,
            Heard(cluster, two, settings=settings) as second,
        ):
            await pass_time(25)
            assert {queue.id for queue in of_topic(first.consumer)} == {0, 2}
            assert {queue.id for queue in of_topic(second.consumer)} == {1}
            everything = of_topic(first.consumer) + of_topic(second.consumer)
            assert sorted(everything) == await first.consumer.queues_of("t")

    run(scenario())


@pytest.mark.row("API-9")
def test_a_chosen_queue_and_a_strategy_send_a_chosen_message_to_a_chosen_member() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 4})
        settings = replace(BEGINNING, allocation=ByParity())

        def stored(request: Command) -> Command:
            queue = int(request.fields.get("e") or request.fields["queueId"])
            cluster["a"].put("t", queue, bytes(request.body))
            return Command(0, {"msgId": "0" * 32, "queueId": str(queue), "queueOffset": "0"})

        cluster["a"].peer.script[310] = stored
        async with (
            cluster.client("one") as one,
            cluster.client("two") as two,
            Heard(cluster, one, settings=settings) as first,
            Heard(cluster, two, settings=settings) as second,
            Producer(client=one, group="shop") as producer,
        ):
            await pass_time(25)
            for number in range(10):
                # Chosen by what is sent: odd numbers for the last member.
                chosen = (await producer.queues("t"))[2 + number % 2]
                await producer.send(Message("t", b"%d" % number), queue=chosen)
            await settle()
            assert first.bodies == [b"%d" % number for number in range(0, 10, 2)]
            assert second.bodies == [b"%d" % number for number in range(1, 10, 2)]

    run(scenario())
