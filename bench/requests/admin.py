"""Requests about delayed, half and dead messages at their worst, for `bench.requests`."""

import json
from collections.abc import Callable, Iterable

from bench.requests.messages import heavy_place, sent_v2
from bench.requests.remoting import frame
from bench.requests.world import GROUP_OF_ALL, WIDE, Loaded, Request
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command

R = RequestCode
DELAYED = "delayed"
HALVES = "halves"
DEAD_GROUP = "dead"
DELAYED_COUNT = 10_000
HALVES_COUNT = 2_000
DEAD_COUNT = 200
QUEUES_COUNT = 10_000
BODY = bytes(10_000)
_HALF_FLAG = 4
_COMMIT = 8


def _scaled(world: Loaded, count: int) -> int:
    return max(10, count * world.size.topics // 10_000)


def _delays(world: Loaded) -> list[Command]:
    """Very many messages with a delay of an hour, sent when they are first needed."""
    if "delays" not in world.prepared:
        due = "TIMER_DELAY_MS\x013600000\x02UNIQ_KEY\x01%032d\x02"
        count = _scaled(world, DELAYED_COUNT)
        world.prepared["delays"] = world.tell(
            *(sent_v2(DELAYED, b"x", due % number) for number in range(count))
        )
    return world.prepared["delays"]


def _halves(world: Loaded) -> list[Command]:
    """Undecided half messages, sent when they are first needed."""
    if "halves" not in world.prepared:
        count = _scaled(world, HALVES_COUNT)
        properties = "TRAN_MSG\x01true\x02PGROUP\x01producers\x02UNIQ_KEY\x01H%031d\x02"
        world.prepared["halves"] = world.tell(
            *(_half(properties % number) for number in range(count))
        )
    return world.prepared["halves"]


def _half(properties: str) -> bytes:
    texts = ("producers", HALVES, "TBW102", 1, 0, _HALF_FLAG, 1_700_000_000_000, 0, properties)
    fields = dict(zip("abcdefghi", texts, strict=True))
    return frame(R.SEND_MESSAGE_V2, {**fields, "j": 0, "k": "false"}, BODY)


def _dead(world: Loaded) -> None:
    """Dead letters of one group, and very many groups that could have some."""
    if "dead" not in world.prepared:
        sends = (sent_v2("letters", BODY) for _ in range(_scaled(world, DEAD_COUNT)))
        places = [int(each.fields["msgId"][16:], 16) for each in world.tell(*sends)]
        backs = ({"offset": place, "group": DEAD_GROUP, "delayLevel": -1} for place in places)
        world.tell(*(frame(R.CONSUMER_SEND_MSG_BACK, fields) for fields in backs))
        settings = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "defaultTopic": "TBW102"}
        names = (f"%DLQ%none-{number}" for number in range(_scaled(world, QUEUES_COUNT)))
        world.prepared["dead"] = world.tell(
            *(frame(R.UPDATE_AND_CREATE_TOPIC, {"topic": name, **settings}) for name in names)
        )


def _ids(answers: Iterable[Command], count: int = 200) -> bytes:
    ids = [answer.fields.get("msgId", "") for answer in answers]
    return json.dumps(ids[:count]).encode()


def _one(answers: list[Command], index: int) -> str:
    return answers[index].fields.get("msgId", "none") if answers else "none"


def _scan(world: Loaded) -> list[bytes]:
    _delays(world)
    return [frame(R.SCAN_DELAYS, {"limit": 1_000, "byTarget": "true"})]


def _describe_delays(world: Loaded) -> list[bytes]:
    ids = _ids(_delays(world))
    return [frame(R.DESCRIBE_DELAYS, {"preview": 1 << 16, "withDue": "true"}, ids)]


def _recall(world: Loaded) -> list[bytes]:
    answers = _delays(world)
    handle = answers[0].fields.get("recallHandle", "none") if answers else "none"
    fields = {"producerGroup": "producers", "topic": DELAYED, "recallHandle": handle}
    return [frame(R.RECALL_MESSAGE, fields)]


def _list_halves(world: Loaded) -> list[bytes]:
    _halves(world)
    return [frame(R.LIST_HALVES, {"limit": 10_000, "group": "none-of-theirs"})]


def _describe_halves(world: Loaded) -> list[bytes]:
    return [frame(R.DESCRIBE_HALVES, {"preview": 1 << 16}, _ids(_halves(world)))]


def _end(world: Loaded) -> list[bytes]:
    answers = _halves(world)
    stored = answers[1].fields if answers else {}
    fields = {
        "producerGroup": "producers",
        "topic": HALVES,
        "tranStateTableOffset": stored.get("queueOffset", "0"),
        "commitLogOffset": int(stored.get("msgId", "0" * 32)[16:] or "0", 16),
        "commitOrRollback": _COMMIT,
        "transactionId": stored.get("transactionId", ""),
    }
    return [frame(R.END_TRANSACTION, fields)]


def _resume(world: Loaded) -> list[bytes]:
    answers = _halves(world)
    id_ = answers[2].fields.get("msgId", "") if len(answers) > 2 else "0" * 32
    return [frame(R.RESUME_CHECK_HALF_MESSAGE, {"msgId": id_})]


def _letters(code: RequestCode, fields: dict[str, object]) -> Request:
    def make(world: Loaded) -> list[bytes]:
        _dead(world)
        return [frame(code, fields)]

    what = "10,000 queues" if code is R.LIST_DEAD_LETTER_QUEUES else "200 letters"
    return Request(name=f"{int(code)} {code.name}, {what}", listener="remoting", make=make)


def _count_empty(world: Loaded) -> list[bytes]:
    heavy_place(world)
    ranges = [[world.topic_ids[-1].hex(), 1, 0, 1 << 60]] * 1_000
    return [frame(R.COUNT_EMPTY_OFFSETS, {}, json.dumps(ranges).encode())]


def _timers(world: Loaded) -> list[bytes]:
    _delays(world)
    return [frame(R.GET_TIMER_METRICS)]


def _sent_reset(_: Loaded) -> list[bytes]:
    """A reset whose offsets are sent to a member."""
    consumer = {"groupName": GROUP_OF_ALL, "subscriptionDataSet": [{"topic": WIDE}]}
    beat = {"clientID": "bench", "consumerDataSet": [consumer], "producerDataSet": []}
    fields = {"topic": WIDE, "group": GROUP_OF_ALL, "timestamp": 1, "isForce": "true"}
    return [
        frame(R.UPDATE_BROKER_CONFIG, {}, b"useServerSideResetOffset=false"),
        frame(R.HEART_BEAT, {}, json.dumps(beat).encode()),
        frame(R.INVOKE_BROKER_TO_RESET_OFFSET, fields),
    ]


def _of(
    code: RequestCode,
    what: str,
    make: Callable[[Loaded], list[bytes]],
    *,
    is_changing: bool = False,
) -> Request:
    return Request(
        name=f"{int(code)} {code.name}, {what}",
        listener="remoting",
        make=make,
        is_changing=is_changing,
    )


REQUESTS: tuple[Request, ...] = (
    _of(R.SCAN_DELAYS, "10,000 that wait", _scan),
    _of(R.GET_TIMER_METRICS, "10,000 that wait", _timers),
    _of(R.INVOKE_BROKER_TO_RESET_OFFSET, "10,000 queues sent to a member", _sent_reset),
    _of(R.DESCRIBE_DELAYS, "200 of 10,000", _describe_delays),
    _of(
        R.CANCEL_DELAY,
        "one of 10,000",
        lambda w: [frame(R.CANCEL_DELAY, {"id": _one(_delays(w), -1)})],
        is_changing=True,
    ),
    _of(
        R.DELIVER_DELAY,
        "one of 10,000",
        lambda w: [frame(R.DELIVER_DELAY, {"id": _one(_delays(w), -1)})],
        is_changing=True,
    ),
    _of(R.CHECK_LOG, "status", lambda w: [frame(R.CHECK_LOG, {"action": "status"})]),
    _of(R.RECALL_MESSAGE, "one of 10,000", _recall, is_changing=True),
    _of(R.LIST_HALVES, "2,000 of another group", _list_halves),
    _of(R.DESCRIBE_HALVES, "200 of 2,000", _describe_halves),
    _of(
        R.RESOLVE_HALF,
        "one of 2,000",
        lambda w: [frame(R.RESOLVE_HALF, {"id": _one(_halves(w), -1), "commit": "true"})],
        is_changing=True,
    ),
    _of(R.END_TRANSACTION, "one of 2,000", _end, is_changing=True),
    _of(R.RESUME_CHECK_HALF_MESSAGE, "one of 2,000", _resume),
    _letters(R.LIST_DEAD_LETTER_QUEUES, {}),
    _letters(R.READ_DEAD_LETTERS, {"group": DEAD_GROUP, "limit": 10_000, "preview": 1 << 16}),
    _letters(R.RESEND_DEAD_LETTER, {"group": DEAD_GROUP, "offset": 0, "again": "true"}),
    _of(R.COUNT_EMPTY_OFFSETS, "1,000 ranges", _count_empty),
)
