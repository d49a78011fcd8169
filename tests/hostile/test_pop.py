"""Requests of pop that no client would send: absurd handles, times, queues and counts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.budget import budget
from tests.gateway.remoting.popclient import PopClient, handle_fields
from tests.gateway.server import RunningServer
from tests.hostile.test_remoting import NUMBERS, TEXTS, under_watch
from tests.seeds import seeded

from rockgate.protocol.remoting.codes import RequestCode as R
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command

TOPIC = "prey"
ANSWERS = {
    ResponseCode.SUCCESS,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.MESSAGE_ILLEGAL,
    ResponseCode.NO_PERMISSION,
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.NO_MESSAGE,
    ResponseCode.INVALID_PARAMETER,
    ResponseCode.POLLING_TIMEOUT,
    ResponseCode.POLLING_FULL,
}
"""What a malformed request may be answered with; SYSTEM_ERROR would be a fault of ours."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("hostile-pop"), rocketmq=True) as running:
        client = PopClient(running.address("remoting"))
        for number in range(8):
            assert client.publish(TOPIC, queue=number % 4).code == 0
        client.socket.close()
        yield running
        running.stop_cleanly()


@pytest.fixture
def attacker(server: RunningServer) -> Iterator[PopClient]:
    client = PopClient(server.address("remoting"))
    with under_watch(server, growth_bytes_max=256 << 20):
        yield client
    client.socket.close()


def expect(answer: Command) -> None:
    assert answer.code in ANSWERS, answer


def test_handles_of_any_text_are_answered(attacker: PopClient) -> None:
    chance = seeded()
    held = attacker.take(TOPIC, "handles", invisibleTime=600_000)
    assert len(held) == 8
    for _ in range(budget("hostile_rounds_each") * 10):
        each = chance.choice(held)
        parts: list[str] = each.handle.split(" ")
        for _ in range(chance.randint(1, 3)):
            parts[chance.randrange(len(parts))] = str(chance.choice((*NUMBERS, *TEXTS)))[:3_000]
        if chance.random() < 0.2:
            del parts[chance.randrange(len(parts)) :]
        fields = {**handle_fields(each, "handles"), "extraInfo": " ".join(parts)}
        if chance.random() < 0.5:
            fields["offset"] = chance.choice(NUMBERS)
        if chance.random() < 0.3:
            fields["queueId"] = chance.choice(NUMBERS)
        if chance.random() < 0.5:
            expect(attacker.ask(R.ACK_MESSAGE, fields))
        else:
            fields["invisibleTime"] = chance.choice((-1, 0, 2**63 - 1, 600_000))
            expect(attacker.ask(R.CHANGE_MESSAGE_INVISIBLETIME, fields))
    # A message may have been acknowledged by a handle that differs in what does not matter.
    assert attacker.pop(TOPIC, "handles").code in (
        ResponseCode.POLLING_TIMEOUT,
        ResponseCode.SUCCESS,
    )


@pytest.mark.parametrize("invisible", NUMBERS)
def test_invisible_times_of_any_size_are_bounded(attacker: PopClient, invisible: int) -> None:
    group = f"times{invisible}".replace("-", "m")
    answer = attacker.pop(TOPIC, group, invisibleTime=invisible, maxMsgNums=1)
    expect(answer)
    if -(2**63) <= invisible < 2**63:
        assert answer.code == ResponseCode.SUCCESS
        assert 1 <= int(answer.fields["invisibleTime"]) <= 12 * 3_600_000
    else:
        assert answer.code == ResponseCode.INVALID_PARAMETER


@pytest.mark.parametrize("field", ["queueId", "maxMsgNums", "pollTime", "bornTime", "initMode"])
@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_of_any_size_in_a_pop_are_answered(
    attacker: PopClient, field: str, value: int
) -> None:
    if field == "pollTime":
        # It waits as long as requested, up to a limit: here there is a message at once.
        expect(attacker.pop(TOPIC, f"polls{value}".replace("-", "m"), pollTime=value))
        return
    answer = attacker.pop(TOPIC, "numbers", **{field: value})
    expect(answer)
    if field == "queueId" and value > 3:
        assert answer.code == ResponseCode.INVALID_PARAMETER
    if field == "maxMsgNums" and value > 32:
        assert answer.code == ResponseCode.INVALID_PARAMETER


def batch(**changes: Any) -> dict[str, Any]:
    bits = base64.b64encode(b"\xff" * 64).decode()
    return {
        "c": "batches",
        "t": TOPIC,
        "r": "0",
        "so": 0,
        "q": 0,
        "rq": 0,
        "pt": 1,
        "it": 1,
        "b": bits,
        **changes,
    }


def acknowledge(client: PopClient, acks: list[dict[str, Any]]) -> Command:
    return client.ask(R.BATCH_ACK_MESSAGE, {}, json.dumps({"acks": acks}).encode())


def test_acknowledgements_of_very_many_messages_are_refused(attacker: PopClient) -> None:
    answer = acknowledge(attacker, [batch()] * 64)
    assert answer.code == ResponseCode.SUCCESS
    answer = acknowledge(attacker, [batch()] * 65)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "more than 32,768 messages" in (answer.remark or "")
    answer = acknowledge(attacker, [batch()] * 20_000)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    bomb = base64.b64encode(b"\xff" * 65).decode()
    assert acknowledge(attacker, [batch(b=bomb)]).code == ResponseCode.INVALID_PARAMETER


def test_very_many_empty_acknowledgements_hold_up_no_one(attacker: PopClient) -> None:
    answer = acknowledge(attacker, [batch(b="")] * 9_000)
    expect(answer)


@pytest.mark.parametrize(
    "changes",
    [
        *({"q": number} for number in NUMBERS),
        *({"so": number} for number in NUMBERS),
        *({"pt": number, "it": number} for number in NUMBERS),
        *({"t": text} for text in TEXTS),
        *({"c": text} for text in TEXTS),
        *({"r": text} for text in TEXTS),
        *({"b": text} for text in ("!", "A", "AAAA=", "\0", "\U0001f600")),
    ],
)
def test_acknowledgements_with_any_values_are_answered(
    attacker: PopClient, changes: dict[str, Any]
) -> None:
    expect(acknowledge(attacker, [batch(**changes)]))


@pytest.mark.parametrize(
    "topic", ["%RETRY%nobody_prey", "%RETRY%", "no-such", "TBW102", "rmq_sys_x"]
)
def test_topics_that_no_one_may_pop_are_answered(attacker: PopClient, topic: str) -> None:
    expect(attacker.pop(topic, "strangers"))
    expect(attacker.ask(R.PEEK_MESSAGE, {**_where(topic), "maxMsgNums": 2**31 - 1}))
    expect(attacker.ask(R.POLLING_INFO, _where(topic)))


def test_an_attempt_without_end_is_refused(attacker: PopClient) -> None:
    answer = attacker.pop(TOPIC, "attempts", order="true", attemptId="x" * 256)
    assert answer.code == ResponseCode.INVALID_PARAMETER


def _where(topic: str) -> dict[str, object]:
    return {"consumerGroup": "strangers", "topic": topic, "queueId": -1}
