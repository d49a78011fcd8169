"""One connection: docs/sdk.md, "A connection"."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.sdk.memorynet import MemoryNet, Peer, now, pass_time, run, settle

from rockgate.protocol.remoting.command import Command
from rockgate.sdk.connection import Link, LinkSettings, split_address
from rockgate.sdk.errors import Closed, TimedOut, Unreachable


def linked(**more: Any) -> tuple[Peer, Link]:
    net = MemoryNet()
    peer = net.listen("b:1")
    return peer, Link("b:1", dial=net.dial, **more)


def silent(_: Command) -> None:
    return None


def test_answers_find_their_requests_in_any_order() -> None:
    async def scenario() -> None:
        peer, link = linked()
        held: list[Command] = []
        peer.script[1] = lambda request: held.append(request)
        asking = [
            asyncio.create_task(link.request(1, {"n": str(n)}, timeout_s=5)) for n in range(3)
        ]
        await settle()
        for request in reversed(held):
            peer.transport.connection.respond(request, Command(0, {"n": request.fields["n"]}))
        peer.transport.flush()
        answers = await asyncio.gather(*asking)
        assert [answer.fields["n"] for answer in answers] == ["0", "1", "2"]
        await link.close()

    run(scenario())


@pytest.mark.row("M-10")
def test_requests_of_one_turn_share_one_dial_and_leave_in_one_write() -> None:
    async def scenario() -> None:
        peer, link = linked()
        await asyncio.gather(*(link.request(1, timeout_s=5) for _ in range(10)))
        assert len(peer.transports) == 1
        assert peer.transport.write_count == 1
        await link.close()

    run(scenario())


@pytest.mark.row("M-06")
@pytest.mark.row("M-09")
@pytest.mark.row("M-11")
def test_a_request_without_an_answer_ends_in_time_and_a_late_answer_is_dropped() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        began = now()
        with pytest.raises(TimedOut, match="to b:1: no answer in 5 s"):
            await link.request(1, timeout_s=5)
        assert now() - began == pytest.approx(5)
        peer.transport.connection.respond(peer.asked[0], Command(0))
        peer.transport.flush()
        answer = await link.request(2, {"x": "y"}, timeout_s=5)
        assert answer.opaque == peer.asked[1].opaque
        await link.close()

    run(scenario())


@pytest.mark.row("M-07")
def test_no_more_requests_are_in_flight_than_may_be() -> None:
    async def scenario() -> None:
        peer, link = linked(settings=LinkSettings(in_flight_max=2))
        peer.script[1] = silent
        asking = [asyncio.create_task(link.request(1, timeout_s=5)) for _ in range(3)]
        await settle()
        assert len(peer.asked) == 2
        peer.transport.connection.respond(peer.asked[0], Command(0))
        peer.transport.flush()
        await settle()
        assert len(peer.asked) == 3
        failed = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(one) for one in failed] == [Command, TimedOut, TimedOut]
        await link.close()

    run(scenario())


@pytest.mark.row("M-06")
def test_a_lost_connection_ends_what_waits_and_the_next_request_dials_again() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        peer.transport.lose(ConnectionResetError("reset"))
        with pytest.raises(Unreachable, match="to b:1 was lost: reset"):
            await asking
        assert not link.is_open
        assert (await link.request(2, timeout_s=5)).code == 0
        assert len(peer.transports) == 2
        await link.close()

    run(scenario())


def test_after_failed_dials_it_waits_longer_and_longer_before_the_next() -> None:
    async def scenario() -> None:
        peer, link = linked(settings=LinkSettings(backoff_s=0.1, backoff_max_s=0.5))
        peer.is_down = True
        waits = []
        for _ in range(5):
            with pytest.raises(Unreachable, match="nobody listens") as failed:
                await link.request(1, timeout_s=5)
            waits.append(failed.value.retry_in_s)
            with pytest.raises(Unreachable, match="could not be reached just now") as early:
                await link.request(1, timeout_s=5)
            assert early.value.retry_in_s == pytest.approx(waits[-1])
            await pass_time(waits[-1])
        assert waits == pytest.approx([0.1, 0.2, 0.4, 0.5, 0.5])
        assert len(peer.dial_times) == 5
        peer.is_down = False
        assert (await link.request(1, timeout_s=5)).code == 0
        assert link.retry_in_s == 0
        await link.close()

    run(scenario())


def test_who_gives_up_does_not_end_the_dial_of_the_others() -> None:
    async def scenario() -> None:
        _, link = linked()
        first = asyncio.create_task(link.request(1, timeout_s=5))
        second = asyncio.create_task(link.request(1, timeout_s=5))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).code == 0
        assert first.cancelled()
        await link.close()

    run(scenario())


def test_the_peer_asks_too_and_is_answered() -> None:
    async def scenario() -> None:
        heard: list[int] = []

        def asked(link: Link, command: Command) -> None:
            heard.append(command.code)
            link.respond(command, Command(0, {"got": command.fields["what"]}))

        peer, link = linked(on_request=asked)
        await link.request(1, timeout_s=5)
        peer.ask(39, {"what": "it"})
        await settle()
        assert heard == [39]
        assert [answer.fields["got"] for answer in peer.answers] == ["it"]
        await link.close()

    run(scenario())


def test_a_peer_that_breaks_the_protocol_is_left() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        peer.transport.tell(b"\x00\x00\x00\x08\x07\x00\x00\x00junk")
        with pytest.raises(Unreachable, match="broke the protocol: header encoding 7"):
            await asking
        assert peer.transport.is_closing()
        await link.close()

    run(scenario())


def test_closing_ends_what_waits_and_what_comes_later() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        await link.oneway(2, timeout_s=5)
        await link.close()
        with pytest.raises(Closed):
            await asking
        with pytest.raises(Closed, match="to b:1 is closed"):
            await link.request(1, timeout_s=5)
        await settle()
        assert peer.codes == [1, 2], "what was queued left before the end"

    run(scenario())


def test_closing_while_it_dials_ends_the_dial() -> None:
    async def scenario() -> None:
        async def never(*_: object) -> tuple[asyncio.BaseTransport, object]:
            await pass_time(1e6)
            raise AssertionError

        link = Link("b:1", dial=never)
        asking = asyncio.create_task(link.request(1, timeout_s=50))
        await settle()
        await link.close()
        with pytest.raises(Closed):
            await asking

    run(scenario())


@pytest.mark.parametrize("address", ["", "host", ":1", "host:", "host:x", "host:0", "host:65536"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        split_address(address)


def test_an_address_may_be_of_ipv6() -> None:
    assert split_address("[::1]:9876") == ("::1", 9876)
