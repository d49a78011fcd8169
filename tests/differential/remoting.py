"""Sequences of RocketMQ requests: topics, messages, half messages, progress and locks.

make NAME COUNT               17: a topic with a number of queues
drop NAME                     215
send NAME QUEUE TAG           310: a message
half NAME QUEUE               310 as a prepared message, for `end` to decide
end COMMIT                    37 of the last open half message
pull NAME QUEUE OFFSET EXPRESSION   11: bodies, and the next offset
ends NAME QUEUE               30 and 31
at NAME QUEUE WHEN            29: the offset at a time, 0 or far ahead
commit NAME QUEUE OFFSET      15
committed NAME QUEUE          14
lock CLIENT QUEUE             41, and what was locked
unlock CLIENT QUEUE           42
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, ClassVar

from tests.differential.player import Address, Answer, Player, Step
from tests.gateway.remoting.client import Client, messages
from tests.waiting import wait_until

NAMES = ("one", "two")
PREPARED, COMMIT, ROLLBACK = 4, 8, 12
FAR_AHEAD_MS = 1 << 42
MISSING = "missing"


class RemotingPlayer(Player):
    """Plays these steps to a broker."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.client = Client(address)
        self._halves: list[dict[str, Any]] = []
        self._sent = 0

    def begin(self) -> None:
        self.make("one", 2)
        settings = {"groupName": self.group, "consumeEnable": True, "retryQueueNums": 1}
        made = self.client.ask(200, {}, json.dumps(settings).encode())
        assert made.code == 0, made.remark

    def close(self) -> None:
        self.client.socket.close()

    # Steps

    def make(self, name: str, count: int) -> Answer:
        fields = {
            "topic": self.name(name),
            "defaultTopic": "TBW102",
            "readQueueNums": count,
            "writeQueueNums": count,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": "false",
        }
        return self.client.ask(17, fields).code

    def drop(self, name: str) -> Answer:
        return self.client.ask(215, {"topic": self.name(name)}).code

    def send(self, name: str, queue: int, tag: str) -> Answer:
        named = {"UNIQ_KEY": f"{self.prefix}{self._sent}", "TAGS": tag, "WAIT": "true"}
        answer = self._publish(name, queue, named)
        if answer.code:
            return [answer.code]
        offset = int(answer.fields["queueOffset"])
        self._wait_for(name, queue, offset + 1)
        return [0, int(answer.fields["queueId"]), offset]

    def half(self, name: str, queue: int) -> Answer:
        named = {
            "UNIQ_KEY": f"{self.prefix}{self._sent}",
            "TRAN_MSG": "true",
            "PGROUP": "producers",
            "WAIT": "true",
        }
        answer = self._publish(name, queue, named, sys_flag=PREPARED)
        if not answer.code:
            place = int(answer.fields["msgId"][-16:], 16)
            self._halves.append(
                {
                    "name": name,
                    "queue": queue,
                    "fields": {
                        "producerGroup": "producers",
                        "tranStateTableOffset": answer.fields["queueOffset"],
                        "commitLogOffset": place,
                        "fromTransactionCheck": "false",
                        "msgId": named["UNIQ_KEY"],
                        "transactionId": answer.fields.get("transactionId", named["UNIQ_KEY"]),
                    },
                }
            )
        return answer.code

    def end(self, commit: bool) -> Answer:
        if not self._halves:
            return "nothing"
        half = self._halves.pop()
        fields = {**half["fields"], "commitOrRollback": COMMIT if commit else ROLLBACK}
        before = self.ends(half["name"], half["queue"])
        answer = self.client.ask(37, fields).code
        if commit and not answer and before[0] == 0:
            self._wait_for(half["name"], half["queue"], before[1] + 1)
        return answer

    def pull(self, name: str, queue: int, offset: int, expression: str) -> Answer:
        answer = self.client.pull(
            self.name(name), offset, queue=queue, subscription=expression, consumerGroup=self.group
        )
        where = [
            int(answer.fields.get(field, -1))
            for field in ("nextBeginOffset", "minOffset", "maxOffset")
        ]
        bodies = [message.body.decode() for message in messages(answer)] if not answer.code else []
        return [answer.code, where, bodies]

    def ends(self, name: str, queue: int) -> Answer:
        fields = {"topic": self.name(name), "queueId": queue}
        last, first = self.client.ask(30, fields), self.client.ask(31, fields)
        if last.code or first.code:
            return [last.code, first.code]
        return [0, int(last.fields["offset"]), int(first.fields["offset"])]

    def at(self, name: str, queue: int, when: int) -> Answer:
        fields = {"topic": self.name(name), "queueId": queue, "timestamp": when}
        answer = self.client.ask(29, fields)
        return [answer.code, None if answer.code else int(answer.fields["offset"])]

    def commit(self, name: str, queue: int, offset: int) -> Answer:
        return self.client.ask(15, {**self._progress(name, queue), "commitOffset": offset}).code

    def committed(self, name: str, queue: int) -> Answer:
        answer = self.client.ask(14, self._progress(name, queue))
        return [answer.code, None if answer.code else int(answer.fields["offset"])]

    def lock(self, client: str, queue: int) -> Answer:
        answer = self.client.ask(41, {}, self._locks(client, queue))
        if answer.code:
            return [answer.code]
        return [0, len(json.loads(bytes(answer.body))["lockOKMQSet"])]

    def unlock(self, client: str, queue: int) -> Answer:
        return self.client.ask(42, {}, self._locks(client, queue)).code

    steps: ClassVar = {
        "make": make,
        "drop": drop,
        "send": send,
        "half": half,
        "end": end,
        "pull": pull,
        "ends": ends,
        "at": at,
        "commit": commit,
        "committed": committed,
        "lock": lock,
        "unlock": unlock,
    }

    # Shared by steps

    @property
    def group(self) -> str:
        return self.name("group")

    def _publish(self, name: str, queue: int, named: dict[str, str], *, sys_flag: int = 0) -> Any:
        self._sent += 1
        return self.client.publish(
            self.name(name),
            f"{self._sent}".encode(),
            queue=queue,
            properties=named,
            sys_flag=sys_flag,
        )

    def _wait_for(self, name: str, queue: int, end: int) -> None:
        """Wait for a message in its queue: a broker lists it after its response."""
        wait_until(lambda: self.ends(name, queue)[:2] == [0, end], "the message is in its queue")

    def _progress(self, name: str, queue: int) -> dict[str, Any]:
        return {"consumerGroup": self.group, "topic": self.name(name), "queueId": queue}

    def _locks(self, client: str, queue: int) -> bytes:
        place = {"topic": self.name("one"), "brokerName": "any", "queueId": queue}
        body = {"consumerGroup": self.group, "clientId": client, "mqSet": [place]}
        return json.dumps(body).encode()


def sequence(random: Random, length: int) -> list[Step]:
    """A sequence over two topics, of which the second may not exist."""
    steps: list[Step] = []
    while len(steps) < length:
        name = random.choice(("one", "one", "one", "two"))
        steps += random.choice(_STEPS)(random, name)
    closing: list[Step] = [["ends", "one", queue] for queue in (0, 1)]
    return [*steps, *closing, *(["pull", "one", queue, 0, "*"] for queue in (0, 1))]


def _queue(random: Random) -> int:
    return random.choice((0, 0, 1, 1, 2))


_STEPS = (
    lambda random, name: [["make", name, random.choice((1, 2, 3))]],
    lambda random, name: [["drop", "two"]],
    lambda random, name: [["send", "one", random.randrange(2), random.choice("AB")]] * 2,
    lambda random, name: [["send", "one", random.randrange(2), random.choice("AB")]],
    lambda random, name: [["half", "one", random.randrange(2)], ["end", random.random() < 0.6]],
    lambda random, name: [["half", "one", random.randrange(2)]],
    lambda random, name: [["end", random.random() < 0.6]],
    lambda random, name: [
        ["pull", name, _queue(random), random.choice((0, 0, 1, 5, 50, -1)), random.choice("*AB")]
    ],
    lambda random, name: [["ends", name, _queue(random)]],
    lambda random, name: [["at", name, random.randrange(2), random.choice((0, FAR_AHEAD_MS))]],
    lambda random, name: [["commit", name, random.randrange(2), random.randrange(9)]],
    lambda random, name: [["committed", name, random.randrange(2)]],
    lambda random, name: [["lock", random.choice("xy"), random.randrange(2)]],
    lambda random, name: [["unlock", random.choice("xy"), random.randrange(2)]],
)
