"""RocketMQ requests about messages at their worst, for `bench.requests`.

Lookups concern the last record of a Kafka client's batch with as many records as the server
decodes. Delayed, half and dead messages are in `bench.requests.admin`.
"""

from collections.abc import Mapping

from bench.requests.remoting import frame, row
from bench.requests.world import GROUP_OF_ALL, WIDE, Loaded, Request, kafka_frame
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import produce as writing
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.ids import offset_message_id, record_place
from rockgate.protocol.remoting.message import encode_batch

R = RequestCode
BODY_MAX = 4 << 20
PROPERTIES_MAX = 30_000
HEAVY_QUEUE = 1
HEAVY_COUNT = 200_000
SAME_KEY = "same"
KEYED = "keyed"
FOREVER_MS = 1 << 62


def sent(
    topic: str, body: bytes, properties: str = "", code: RequestCode = R.SEND_MESSAGE
) -> bytes:
    """A message in the long form of a send."""
    fields = {
        "producerGroup": "producers",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 1,
        "queueId": 0,
        "sysFlag": 0,
        "bornTimestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": properties,
        "reconsumeTimes": 0,
        "unitMode": "false",
        "batch": "false",
    }
    return frame(code, fields, body)


def sent_v2(
    topic: str, body: bytes, properties: str = "", code: RequestCode = R.SEND_MESSAGE_V2
) -> bytes:
    """A message in the short form of a send."""
    texts = ("producers", topic, "TBW102", 1, 0, 0, 1_700_000_000_000, 0, properties, 0, "false")
    return frame(code, dict(zip("abcdefghijk", texts, strict=True)), body)


def _large(code: RequestCode) -> Request:
    properties = "KEYS\x01" + " ".join(f"k{number}" for number in range(100)) + "\x02big\x01"
    properties += "x" * (PROPERTIES_MAX - len(properties))
    make = sent if code in (R.SEND_MESSAGE, R.SEND_REPLY_MESSAGE) else sent_v2
    return Request(
        name=f"{int(code)} {code.name}, 4 MB",
        listener="remoting",
        make=lambda _: [make("sent", bytes(BODY_MAX - (1 << 16)), properties, code)],
    )


def heavy_place(world: Loaded) -> int:
    """The address of the last record of a very large batch, which is written on first use."""
    asked = {"topic": WIDE, "queueId": HEAVY_QUEUE, "index": 0, "count": 1}
    look = frame(R.QUERY_CONSUME_QUEUE, asked)
    count = HEAVY_COUNT * world.size.topics // 10_000
    place = _first_place(world, look)
    if place is None and world.listeners:
        records = [Record(number, 0, None, b"x") for number in range(count)]
        batch = build_batch(records, base_offset=0, compression=Compression.ZSTD)
        data = writing.PartitionProduceData(index=HEAVY_QUEUE, records=bytes(batch))
        topic = writing.TopicProduceData(topic_id=world.topic_ids[-1], partition_data=[data])
        request = writing.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])
        world.call(kafka_frame(ApiKey.PRODUCE, request))
        place = _first_place(world, look)
    return record_place(place or 0, count - 1)


def _first_place(world: Loaded, look: bytes) -> int | None:
    for answer in world.tell(look):
        found: list[Mapping[str, int]] = world.body_of(answer).get("queueData") or []
        if found:
            return found[0]["physicOffset"] & (1 << 44) - 1
    return None


def _view(world: Loaded) -> list[bytes]:
    return [frame(R.VIEW_MESSAGE_BY_ID, {"offset": heavy_place(world)})]


def _give_back(world: Loaded) -> list[bytes]:
    fields = {"offset": heavy_place(world), "group": "back", "delayLevel": 3}
    return [frame(R.CONSUMER_SEND_MSG_BACK, fields)]


def heavy_id(world: Loaded) -> str:
    """The id of that record as consumers see it."""
    return offset_message_id(b"\x7f\0\0\x01", 10911, heavy_place(world))


def _same_keys(world: Loaded) -> list[bytes]:
    """Very many messages with one key, none of them stored before its lookup."""
    properties = f"KEYS\x01{SAME_KEY}\x02".encode()
    count = max(10, 4_096 * world.size.topics // 10_000)
    body = encode_batch([(0, b"x", properties)] * count)
    texts = ("producers", KEYED, "TBW102", 1, 0, 0, 1_700_000_000_000, 0, "", 0, "false")
    fields = {**dict(zip("abcdefghijk", texts, strict=True)), "m": "true"}
    return [frame(R.SEND_BATCH_MESSAGE, fields, body)] * 5


def _by_key(world: Loaded, begin_ms: int, end_ms: int) -> list[bytes]:
    asked = {
        "topic": KEYED,
        "key": SAME_KEY,
        "maxNum": 64,
        "beginTimestamp": begin_ms,
        "endTimestamp": end_ms,
    }
    return [*_same_keys(world), frame(R.QUERY_MESSAGE, asked)]


def _queue(code: RequestCode, more: Mapping[str, object], what: str) -> Request:
    """A request about the queue with the very large batch."""

    def make(world: Loaded) -> list[bytes]:
        heavy_place(world)
        return [frame(code, {"topic": WIDE, "queueId": HEAVY_QUEUE, **more})]

    return Request(name=f"{int(code)} {code.name}, {what}", listener="remoting", make=make)


REQUESTS: tuple[Request, ...] = (
    _large(R.SEND_MESSAGE),
    _large(R.SEND_MESSAGE_V2),
    _large(R.SEND_REPLY_MESSAGE),
    _large(R.SEND_REPLY_MESSAGE_V2),
    Request(
        name="12 QUERY_MESSAGE, 20,000 with that key",
        listener="remoting",
        make=lambda w: _by_key(w, 0, FOREVER_MS),
    ),
    Request(
        name="12 QUERY_MESSAGE, 20,000 with that key at another time",
        listener="remoting",
        make=lambda w: _by_key(w, 0, 1),
    ),
    Request(
        name="33 VIEW_MESSAGE_BY_ID, of a batch of 200,000 records", listener="remoting", make=_view
    ),
    Request(
        name="36 CONSUMER_SEND_MSG_BACK, of a batch of 200,000 records",
        listener="remoting",
        make=_give_back,
    ),
    _queue(R.SEARCH_OFFSET_BY_TIMESTAMP, {"timestamp": 1}, "in a batch of 200,000 records"),
    _queue(R.GET_MAX_OFFSET, {}, "of such a batch"),
    _queue(R.GET_MIN_OFFSET, {}, "of such a batch"),
    _queue(R.GET_EARLIEST_MSG_STORETIME, {}, "of such a batch"),
    _queue(
        R.QUERY_CONSUME_QUEUE, {"index": 100_000, "count": 1_000}, "100 offsets of such a batch"
    ),
    _queue(
        R.LITE_PULL_MESSAGE,
        {
            "consumerGroup": "lite",
            "queueOffset": 199_000,
            "maxMsgNums": 1_024,
            "sysFlag": 4,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
            "expressionType": "TAG",
        },
        "1,000 of such a batch",
    ),
    row(
        R.UPDATE_CONSUMER_OFFSET,
        {"consumerGroup": GROUP_OF_ALL, "topic": WIDE, "queueId": 0, "commitOffset": 0},
    ),
    row(
        R.QUERY_CONSUMER_OFFSET,
        {"consumerGroup": GROUP_OF_ALL, "topic": WIDE, "queueId": 0},
    ),
)
