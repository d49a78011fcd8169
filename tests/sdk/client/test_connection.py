"""One connection: docs/reference/sdk.md, "A connection"."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.sdk.memorynet import MemoryNet, Peer, now, pass_time, run, settle

from rockgate.protocol.remoting.command import Command, encode
from rockgate.sdk.client.connection import Link, LinkSettings, split_address
from rockgate.sdk.errors import Closed, NotRocketMQ, TimedOut, Unreachable


def linked(**more: Any) -> tuple[Peer, Link]:
    net = MemoryNet()
    peer = net.listen("b:1")
    return peer, Link("b:1", dial=net.dial, **more)


def silent(_: Command) -> None:
    return None


@pytest.mark.row("M-05")
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
def test_a_request_without_an_answer_ends_in_time_and_a_late_answer_is_dropped() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        began = now()
        with pytest.raises(TimedOut, match="to b:1: no response within 5 s"):
            await link.request(1, timeout_s=5)
        assert now() - began == pytest.approx(5)
        peer.transport.connection.respond(peer.asked[0], Command(0))
        peer.transport.flush()
        answer = await link.request(2, {"x": "y"}, timeout_s=5)
        assert answer.opaque == peer.asked[1].opaque
        await link.close()

    run(scenario())


@pytest.mark.row("M-05")
def test_an_answer_that_no_one_waits_for_is_dropped_with_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        [request] = peer.asked
        strange = Command(1, opaque=request.opaque + 1000)
        peer.transport.connection.respond(strange, Command(0, {"for": "nobody"}))
        peer.transport.flush()
        await settle()
        assert not asking.done()
        peer.transport.connection.respond(request, Command(0, {"for": "it"}))
        peer.transport.flush()
        assert (await asking).fields == {"for": "it"}
        await link.close()

    caplog.set_level("INFO")
    run(scenario())
    assert "b:1: " in caplog.text and "bytes of late responses" in caplog.text


@pytest.mark.row("M-11")
def test_connecting_counts_against_the_time_of_a_request() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        peer = net.listen("b:1")
        peer.script[1] = silent

        async def slowly(*what: Any) -> tuple[asyncio.BaseTransport, object]:
            await pass_time(2)
            return await net.dial(*what)

        link = Link("b:1", dial=slowly)
        began = now()
        with pytest.raises(TimedOut, match="no response within 5 s"):
            await link.request(1, timeout_s=5)
        assert now() - began == pytest.approx(5)
        await link.close()
        link = Link("b:1", dial=slowly)
        with pytest.raises(TimedOut, match="was not sent within 1 s"):
            await link.request(1, timeout_s=1)
        await link.close()

    run(scenario())


@pytest.mark.row("M-11")
def test_a_late_answer_leaves_the_connection_and_a_send_that_fails_does_not() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        for _ in range(5):
            with pytest.raises(TimedOut):
                await link.request(1, timeout_s=1)
            assert (await link.request(2, timeout_s=5)).code == 0
        assert len(peer.transports) == 1, "the peer is there, and others are answered"
        peer.transport.lose(BrokenPipeError("cannot send"))
        with pytest.raises(Unreachable, match="cannot send"):
            await link.request(1, timeout_s=5)
        assert not link.is_open
        assert (await link.request(2, timeout_s=5)).code == 0
        assert len(peer.transports) == 2
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
        await link.request(2, timeout_s=5)
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        peer.transport.lose(ConnectionResetError("reset"))
        with pytest.raises(Unreachable, match=r"^b:1 closed the connection \(reset\)\.$"):
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
            with pytest.raises(
                Unreachable, match="was unreachable; the next attempt is in"
            ) as early:
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


@pytest.mark.parametrize("has_answered", [True, False])
def test_a_peer_that_breaks_the_protocol_is_left(has_answered: bool) -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        if has_answered:
            await link.request(2, timeout_s=5)
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        peer.transport.tell(b"\x00\x00\x00\x08\x07\x00\x00\x00junk")
        what = "does not speak the RocketMQ protocol" if has_answered else "is not a RocketMQ port"
        with pytest.raises(Unreachable, match=f"b:1 {what}: Unknown header encoding 7") as raised:
            await asking
        assert isinstance(raised.value, NotRocketMQ) is not has_answered
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


@pytest.mark.parametrize(
    "address",
    [
        "",
        "host",
        ":1",
        "host:",
        "host:x",
        "host:0",
        "host:65536",
        "a b:1",
        "\x1b:1",
        f"{'x' * 256}:1",
        "host:" + "1" * 5000,
        "host:\uff19",
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected host:port"):
        split_address(address)


def test_an_address_may_be_of_ipv6() -> None:
    assert split_address("[::1]:9876") == ("::1", 9876)


def test_a_peer_that_says_nothing_is_dialled_again_after_a_time_out() -> None:
    async def scenario() -> None:
        peer, link = linked()
        await link.request(2, timeout_s=3)
        peer.script[1] = silent
        waiting = asyncio.create_task(link.request(1, timeout_s=40))
        await pass_time(1)
        with pytest.raises(TimedOut):
            await link.request(1, timeout_s=3)
        with pytest.raises(Unreachable, match="b:1 has been silent for 3"):
            await waiting
        assert (await link.request(2, timeout_s=3)).code == 0
        assert len(peer.transports) == 2
        assert peer.transports[0].is_closing()
        await link.close()

    run(scenario())


def test_short_time_outs_add_up_to_silence() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        for _ in range(6):
            assert len(peer.transports) <= 1
            with pytest.raises(TimedOut):
                await link.request(1, timeout_s=0.5)
        assert (await link.request(2, timeout_s=0.5)).code == 0
        assert len(peer.transports) == 2
        await link.close()

    run(scenario())


@pytest.mark.parametrize(("how", "timeout_s"), [("answers others", 4), ("answers too late", 2.5)])
def test_a_peer_that_says_anything_is_kept(how: str, timeout_s: float) -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        for _ in range(15):
            asking = asyncio.create_task(link.request(1, timeout_s=timeout_s))
            await pass_time(2)
            if how == "answers others":
                await link.request(2, timeout_s=1)
            with pytest.raises(TimedOut):
                await asking
            if how == "answers too late":
                peer.transport.connection.respond(peer.asked[-1], Command(0))
                peer.transport.flush()
                await settle()
        assert len(peer.transports) == 1
        await link.close()

    run(scenario())


def test_a_frame_that_never_ends_is_no_sign_of_life() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        began = now()
        trickled = b"\x00\xff\xff\xff" + bytes(100)
        for byte in trickled:
            with pytest.raises((TimedOut, Unreachable)):
                await link.request(1, timeout_s=1)
            if len(peer.transports) > 1:
                break
            peer.transport.tell(bytes([byte]))
        assert now() - began < 40
        await link.close()

    run(scenario())


def test_an_answer_of_another_number_is_nobodys() -> None:
    async def scenario() -> None:
        peer, link = linked()
        held: list[Command] = []
        peer.script[1] = lambda request: held.append(request)
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        [request] = held
        for opaque in (request.opaque + 1, -1, 2**31 - 1, -(2**31)):
            wrong = Command(0, {"wrong": "it"}, opaque=opaque, flag=1)
            peer.transport.tell(encode(wrong))
        peer.transport.connection.respond(request, Command(0, {"right": "it"}))
        peer.transport.flush()
        assert (await asking).fields == {"right": "it"}
        await link.close()

    run(scenario())


def test_a_frame_that_is_too_large_ends_the_connection() -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.script[1] = silent
        asking = asyncio.create_task(link.request(1, timeout_s=5))
        await settle()
        peer.transport.tell(b"\x7f\xff\xff\xff")
        with pytest.raises(NotRocketMQ, match="is not a RocketMQ port"):
            await asking
        assert (await link.request(2, timeout_s=3)).code == 0
        await link.close()

    run(scenario())


def test_closing_leaves_a_peer_that_does_not_read_after_a_second() -> None:
    async def scenario() -> None:
        peer, link = linked()
        await link.request(1, timeout_s=5)
        peer.reads = False
        began = now()
        await link.close()
        assert now() - began == pytest.approx(1)
        assert peer.transport.is_closing()
        await link.close()

    run(scenario())


def test_a_cancelled_close_leaves_the_peer_at_once() -> None:
    async def scenario() -> None:
        peer, link = linked()
        await link.request(1, timeout_s=5)
        peer.reads = False
        closing = asyncio.create_task(link.close())
        await settle()
        assert not peer.transport.is_closing()
        closing.cancel()
        await settle()
        assert peer.transport.is_closing()
        await link.close()

    run(scenario())


def test_a_peer_that_reads_nothing_is_left_though_no_one_waits_for_answers() -> None:
    async def scenario() -> None:
        peer, link = linked()
        await link.oneway(1, timeout_s=5)
        protocol = peer.transport.protocol
        protocol.pause_writing()
        for _ in range(2):
            with pytest.raises(TimedOut, match="was not sent"):
                await link.oneway(1, timeout_s=2)
        assert peer.transport.is_closing()
        await settle()
        await link.oneway(1, timeout_s=5)
        assert len(peer.transports) == 2
        await link.close()

    run(scenario())


def test_a_peer_that_asks_and_reads_no_answers_is_not_written_to() -> None:
    async def scenario() -> None:
        peer, link = linked(on_request=lambda link, command: link.respond(command, Command(0)))
        await link.request(1, timeout_s=5)
        peer.transport.protocol.pause_writing()
        count = peer.transport.write_count
        for _ in range(50):
            peer.ask(39)
        await settle()
        assert peer.transport.write_count == count
        await link.close()

    run(scenario())


@pytest.mark.parametrize("host", ["x" * 70, "a..b", "\u00e9" * 200])
def test_a_host_that_is_no_name_is_one_that_cannot_be_reached(host: str) -> None:
    async def scenario() -> None:
        link = Link(f"{host}:1")
        with pytest.raises(Unreachable):
            await link.request(1, timeout_s=5)
        assert link.retry_in_s > 0
        await link.close()

    asyncio.run(scenario())


class RaisingHook:
    """One of the application's that raises before or after."""

    def __init__(self, when: str) -> None:
        self.when = when

    def before_request(self, address: str, code: int, fields: Any, body: Any) -> None:
        if self.when == "before":
            raise LookupError("no key")

    def after_response(self, address: str, code: int, answer: Command) -> None:
        if self.when == "after":
            raise LookupError("no key")


def test_what_a_hook_raises_behind_an_answer_changes_nothing() -> None:
    async def scenario() -> None:
        _, link = linked(hooks=[RaisingHook("after")])
        assert (await link.request(1, timeout_s=5)).code == 0
        await link.close()
        _, link = linked(hooks=[RaisingHook("before")])
        with pytest.raises(LookupError):
            await link.request(1, timeout_s=5)
        await link.close()

    run(scenario())


def test_what_happens_to_a_connection_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        peer, link = linked()
        peer.is_down = True
        for _ in range(5):
            with pytest.raises(Unreachable):
                await link.request(1, timeout_s=5)
            await pass_time(2)
        peer.is_down = False
        await link.request(1, timeout_s=5)
        peer.transport.lose()
        await settle()
        await link.request(1, timeout_s=5)
        await link.close()

    with caplog.at_level(logging.INFO, "rockgate.sdk"):
        run(scenario())
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "Cannot connect to b:1: nobody listens"),
        ("INFO", "connected to b:1"),
        ("WARNING", "b:1 closed the connection."),
        ("INFO", "connected to b:1"),
    ]
