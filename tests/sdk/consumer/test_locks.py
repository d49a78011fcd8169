"""Order and locks on a virtual clock: whose a queue is, for how long, and whose turn it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sdk.consumer.memory_cluster import BEGINNING, Heard, MemoryCluster, numbered
from tests.sdk.memorynet import pass_time, run

from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.sdk import ConsumerSettings

ORDERLY = replace(BEGINNING, is_orderly=True)


@pytest.mark.row("C-39", "U-04")
def test_a_listener_runs_in_offset_order_and_gives_up_its_turn_after_a_minute() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        for queue in (0, 1):
            cluster["a"].put("t", queue, *numbered(0, 20))
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=replace(ORDERLY, workers=1))
            heard.before = lambda _: pass_time(8)
            async with heard:
                await pass_time(200)
                seen = [(message.queue.id, message.offset) for message in heard.messages]
        for queue in (0, 1):
            offsets = [offset for each, offset in seen if each == queue]
            assert offsets == list(range(len(offsets)))
        # The eighth message ends after a minute: then the other queue has its turn.
        assert [queue for queue, _ in seen][:24] == [0] * 8 + [1] * 8 + [0] * 8

    run(scenario())


@pytest.mark.row("C-39", "U-04")
def test_a_listener_runs_only_while_the_lock_of_its_queue_is_held_and_fresh() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 300))
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=ORDERLY)
            heard.before = lambda _: pass_time(1)
            async with heard:
                await pass_time(70.5)
                assert len(heard.bodies) == 71
                # Asked for once, and then renewed every twenty seconds.
                times = [time for time in cluster.times(41)]
                assert times == [0.0, 0.0, 20.0, 40.0, 60.0]
                # No broker answers: a lock acquired at 60 s is valid for half a minute.
                cluster["a"].silent = {41}
                await pass_time(60)
                last_s = heard.times[-1]
                assert 88.0 <= last_s <= 91.0
                # Another has it: nothing is consumed here, however often it is asked for.
                cluster["a"].silent.clear()
                cluster["a"].locks["t", 0] = "another"
                await pass_time(60)
                assert heard.times[-1] == last_s
                # It is free, and there are no gaps.
                cluster["a"].locks.clear()
                await pass_time(25)
                assert heard.times[-1] > last_s
                offsets = [message.offset for message in heard.messages]
                assert sorted(set(offsets)) == list(range(max(offsets) + 1))

    run(scenario())


@pytest.mark.row("U-04")
def test_the_times_of_locks_are_rocketmqs() -> None:
    settings = ConsumerSettings()
    assert (settings.lock_s_max, settings.lock_renew_s, settings.suspend_s) == (30.0, 20.0, 1.0)
    assert RemotingConfig().lock_expiry_ms == 60_000
    for suspend_s in (0.01, 30.0):
        ConsumerSettings(suspend_s=suspend_s)
    for suspend_s in (0.009, 30.1):
        with pytest.raises(ValueError, match=r"suspend_s must be 0.01 to 30.0"):
            ConsumerSettings(suspend_s=suspend_s)
