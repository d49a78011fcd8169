"""What operators ask at RocketMQ's listener, by codes of our own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from tests.budget import budget
from tests.gateway.remoting.client import BINARY, Client, messages
from tests.seeds import seeded
from tests.waiting import wait_until

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode

SCAN, DESCRIBE, CANCEL, DELIVER = 31001, 31002, 31003, 31004
HALVES, RESOLVE, CHECK = 31011, 31013, 31041


def told(client: Client, code: int, fields: dict[str, Any], body: bytes = b"") -> Any:
    answer = client.ask(code, fields, body)
    assert answer.code == 0, answer.remark
    return json.loads(bytes(answer.body))


def delayed(client: Client, topic: str, key: str, delay_ms: int) -> None:
    given = {"UNIQ_KEY": key, "TIMER_DELAY_MS": str(delay_ms)}
    assert client.publish(topic, key.encode(), properties=given).code == 0


def test_of_a_cancel_and_the_delivery_exactly_one_happens(broker: Client) -> None:
    chance = seeded()
    count = budget("cancel_races")
    keys = [f"race-{number}" for number in range(count)]
    won: set[str] = set()
    broker.publish("races", b"first")
    # A few at a time: each cancel comes about when its message is due.
    for start in range(0, count, 20):
        group = keys[start : start + 20]
        for key in group:
            delayed(broker, "races", key, chance.randrange(1, 30))
        chance.shuffle(group)
        won.update(key for key in group if told(broker, CANCEL, {"id": key})["isCancelled"])

    def arrived() -> list[str]:
        found: list[str] = []
        offset = 1
        while (answer := broker.pull("races", offset)).code == 0:
            found += [message.body.decode() for message in messages(answer)]
            offset = int(answer.fields["nextBeginOffset"])
        return found

    wait_until(lambda: len(arrived()) >= count - len(won), "all others are delivered")
    assert sorted([*arrived(), *won]) == sorted(keys)
    sys.stdout.write(f"{len(won)} of {count} were cancelled\n")


def test_a_message_is_delivered_early_once_and_says_where(broker: Client) -> None:
    delayed(broker, "hasty", "hasty-1", 3_600_000)
    delayed(broker, "hasty", "hasty-2", 3_600_000)
    done = told(broker, DELIVER, {"id": "hasty-2"})
    assert done["isDelivered"]
    assert done["delayed"]["delivered"] == "hasty/0/0"
    [found] = messages(broker.pull("hasty", 0))
    assert (found.body, found.properties["UNIQ_KEY"]) == (b"hasty-2", "hasty-2")
    again = told(broker, DELIVER, {"id": "hasty-2"})
    assert not again["isDelivered"]
    assert again["delayed"]["delivered"] == "hasty/0/0"
    assert told(broker, DELIVER, {"id": "nothing"}) == {"isDelivered": False, "delayed": None}
    assert told(broker, CANCEL, {"id": "hasty-2"})["isCancelled"] is False
    assert told(broker, CANCEL, {"id": "hasty-1"})["isCancelled"]


def test_a_message_for_a_deleted_topic_is_not_delivered_early(broker: Client) -> None:
    delayed(broker, "gone", "gone-1", 3_600_000)
    assert broker.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "gone"}).code == 0
    answer = broker.ask(DELIVER, {"id": "gone-1"})
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_timeline_counts_by_due_time(broker: Client) -> None:
    for minutes in (5, 5, 7):
        delayed(broker, "timed", f"timed-{minutes}", minutes * 60_000)
    asked = {"byTarget": "true", "topic": "timed", "bucketMs": 60_000}
    found = told(broker, SCAN, {**asked, "bucketCount": 60})
    (counts,) = [each["buckets"] for each in found["counts"]]
    assert sorted(counts.values()) in ([1, 2], [1, 1, 1])
    assert max(map(int, counts)) - min(map(int, counts)) in (2, 3)
    near = told(broker, SCAN, {**asked, "bucketCount": 3})
    assert [each["buckets"] for each in near["counts"]] == [{}]
    plain = told(broker, SCAN, {"byTarget": "true", "topic": "timed"})
    assert [each["buckets"] for each in plain["counts"]] == [{}]


def test_the_log_is_checked_beside_the_server(broker: Client) -> None:
    broker.publish("checked", b"one")
    told(broker, CHECK, {"action": "start"})
    last: dict[str, Any] = {}

    def is_over() -> bool:
        last.update(told(broker, CHECK, {}))
        return bool(last["state"] != "running")

    wait_until(is_over, "the check ends")
    assert last["state"] == "done", last
    assert last["report"]["damage_count"] == 0
    assert last["report"]["entry_count"] > 0
    assert last["readBytes"] == last["totalBytes"] > 0


def test_a_check_of_the_log_can_be_stopped(broker: Client) -> None:
    assert told(broker, CHECK, {"action": "start"})["state"] == "running"
    assert told(broker, CHECK, {"action": "stop"})["state"] == "stopped"
    assert told(broker, CHECK, {})["state"] == "stopped"
    assert told(broker, CHECK, {"action": "stop"})["state"] == "stopped"


def test_a_scan_continues_where_its_last_part_ended(broker: Client) -> None:
    for number in range(250):
        delayed(broker, "parts", f"part-{number}", 3_600_000)
    whole = told(broker, SCAN, {"limit": 1000, "byTarget": "true", "topic": "parts"})
    assert whole["next"] == -1
    assert [sum(each["due"]) for each in whole["counts"]] == [250]
    assert len(whole["soonest"]) == 250
    nothing = told(broker, SCAN, {"start": 1 << 40})
    assert (nothing["next"], nothing["counts"]) == (-1, [])
    assert nothing["waiting"] >= 250


def test_a_binary_header_can_ask_as_well(connect: Callable[..., Client]) -> None:
    assert told(connect(encoding=BINARY), SCAN, {})["waiting"] >= 0


def test_what_makes_no_sense_is_refused_by_name(broker: Client) -> None:
    for code, fields, body, problem in (
        (SCAN, {"limit": "many"}, b"", "limit"),
        (DESCRIBE, {}, b"{", "array of ids"),
        (DESCRIBE, {}, json.dumps(["x"] * 201).encode(), "201 ids exceed the maximum of 200."),
        (DESCRIBE, {}, json.dumps(["x" * 5000]).encode(), "5,000 characters"),
        (CANCEL, {}, b"", "id"),
        (CANCEL, {"id": ""}, b"", "0 characters"),
        (DELIVER, {"id": ""}, b"", "0 characters"),
        (RESOLVE, {"id": "1", "commit": "perhaps"}, b"", "commit"),
        (CHECK, {"action": "mend"}, b"", "is not one of"),
        (HALVES, {"openMs": "old"}, b"", "openMs"),
    ):
        answer = broker.ask(code, fields, body)
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert problem in (answer.remark or "")
