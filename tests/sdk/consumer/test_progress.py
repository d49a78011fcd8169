"""When a group's progress is saved, on a virtual clock, and what comes again if it was not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.house.checkout import ROOT
from tests.sdk.consumer.memory_cluster import BEGINNING, Heard, MemoryCluster, numbered
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.protocol.remoting.command import Command
from rockgate.sdk import PullConsumer, Queue, Received, Refused, SdkError

A0 = Queue("t", "a", 0)


@pytest.mark.row("OFF-4", "PROP-22")
def test_progress_is_saved_every_five_seconds_so_a_crash_repeats_what_was_done_since() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        client = await cluster.client().open()
        heard = Heard(cluster, client)
        await heard.consumer.open()
        # One message each second.
        for number in range(23):
            cluster["a"].put("t", 0, b"%d" % number)
            await pass_time(1)
        saved = [each for each in cluster.of(15) if each.fields["topic"] == "t"]
        assert [round(each.at_s) for each in saved] == [5, 10, 15, 20]
        assert len(heard.bodies) == 23
        # A crash now: what comes again is at most what was done in five seconds.
        client.abort()
        with suppress(SdkError):
            await heard.consumer.close()
        cluster.members.clear()
        progress = cluster["a"].progress("g")
        assert progress is not None
        async with cluster.client("two") as other, Heard(cluster, other) as again:
            await pass_time(25)
            assert again.bodies == heard.bodies[progress:]
            assert len(again.bodies) <= 5

    run(scenario())


@pytest.mark.row("OFF-6")
def test_progress_is_saved_by_timer_with_each_pull_and_when_a_queue_is_given_up() -> None:
    async def saved(way: str) -> None:
        cluster = MemoryCluster({"a": 1})
        persist_s = 5.0 if way == "timer" else 3600.0
        settings = replace(BEGINNING, persist_s=persist_s)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            cluster["a"].put("t", 0, *numbered(0, 3))
            await settle()
            assert cluster["a"].progress("g") is None
            if way == "timer":
                await pass_time(5.1)
                assert len(cluster.of(15)) == 1
            elif way == "pull":
                await pass_time(15.1)
                assert cluster.of(15) == []
            else:
                await heard.consumer.unsubscribe("t")
                await pass_time(1)
                assert len(cluster.of(15)) == 1
            assert cluster["a"].progress("g") == 3

    for way in ("timer", "pull", "given up"):
        run(saved(way))


@pytest.mark.row("OFF-3")
def test_what_is_held_is_saved_and_what_is_not_is_forgotten_whichever_queue_fails() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2, "b": 1})
        # Only the timer saves anything here: pulls have nothing to come back for.
        async with cluster.client() as client, Heard(cluster, client):
            cluster["a"].put("t", 0, b"x")
            cluster["a"].put("t", 1, b"x")
            cluster["b"].put("t", 0, b"x")
            await settle()
            cluster["a"].silent = {15}
            cluster["a"].peer.is_down = True
            for transport in cluster["a"].peer.transports:
                transport.lose()
            await pass_time(6)
            # One broker is away: the other hears of its queue.
            assert cluster["b"].progress("g") == 1
            assert cluster["a"].progress("g", queue=0) is None
            cluster["a"].silent.clear()
            cluster["a"].peer.is_down = False
            await pass_time(20)
            assert cluster["a"].progress("g", queue=0) == 1
            # The last queue goes to another member, who commits to it from now on.
            cluster.members["g"]["zz"] = next(iter(cluster.members["g"].values()))
            cluster.notify("g")
            await pass_time(2)
            cluster["b"].set_progress("g", 50)
            mark = len(cluster.of(15))
            cluster["a"].put("t", 0, b"y")
            await pass_time(20)
            later = {(each.broker, each.fields["queueId"]) for each in cluster.of(15)[mark:]}
            assert later == {("a", "0")}
            assert cluster["b"].progress("g") == 50

    run(scenario())


@pytest.mark.row("OFF-5")
def test_progress_is_read_from_memory_a_broker_or_memory_first_and_none_is_no_error() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with (
            cluster.client() as client,
            PullConsumer(client=client, group="g") as consumer,
        ):
            assert consumer.known_offset(A0) is None
            assert await consumer.committed(A0) is None
            cluster["a"].set_progress("g", 7)
            # Nothing is known here until a broker was asked.
            assert consumer.known_offset(A0) is None
            assert await consumer.committed(A0) == 7
            assert consumer.known_offset(A0) == 7
            consumer.commit(A0, 9)
            assert consumer.known_offset(A0) == 9
            assert await consumer.committed(A0) == 9
            assert await consumer.committed(A0, from_store=True) == 7
            cluster["a"].refusing[14] = Command(1, remark="cannot be read")
            with pytest.raises(Refused, match="cannot be read"):
                await consumer.committed(A0, from_store=True)

    run(scenario())


@pytest.mark.row("OFF-9", "Q-01")
def test_after_a_crash_messages_may_come_again_with_the_same_id_and_none_is_lost() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        for queue in (0, 1):
            cluster["a"].put("t", queue, *numbered(0, 40))
        done: list[tuple[int, int]] = []
        ids: dict[tuple[int, int], set[str]] = {}

        async def listen(message: Received) -> None:
            await pass_time(0.2)
            key = message.queue.id, message.offset
            done.append(key)
            ids.setdefault(key, set()).add(message.message_id)

        for attempt in range(4):
            client = await cluster.client(f"m{attempt}").open()
            heard = Heard(cluster, client, settings=replace(BEGINNING, workers=2))
            heard.before = listen
            await heard.consumer.open()
            await pass_time(3.3 if attempt < 3 else 30.0)
            # It dies without a word, and without having saved what it did last.
            client.abort()
            with suppress(SdkError):
                await heard.consumer.close()
            cluster.members.clear()
            await asyncio.sleep(0)
        assert set(done) == {(queue, offset) for queue in (0, 1) for offset in range(40)}
        assert len(done) > 80
        assert all(len(each) == 1 for each in ids.values())

    run(scenario())
    reference = (ROOT / "docs/reference/sdk.md").read_text(encoding="utf-8")
    assert "Delivery is at least once" in reference
