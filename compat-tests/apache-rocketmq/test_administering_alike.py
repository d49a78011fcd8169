"""Requests of administration that no command of mqadmin sends, or not with all they can say.

The same ones to the server and to Apache's brokers, in the same state; a test says what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker
from bench.peers import jars, rocketmq
from tests.gateway.remoting.client import Client, messages
from tests.waiting import wait_until

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

CLIENT = f"apache-rocketmq {jars.version(rocketmq.NAME)}"
ROCKGATE = "rockgate"
pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(300)]
TOPIC, FIRST, SECOND, QUEUES, EACH = "asked", "firsts", "seconds", 2, 6
C = RequestCode


class Asked:
    """A broker with twelve messages in two queues, and two groups; the first has a member."""

    def __init__(self, kind: str, broker: Broker) -> None:
        self.kind = kind
        self.broker = broker
        broker.make_topic(TOPIC, QUEUES)
        self.client = Client(broker.address)
        for number in range(QUEUES * EACH):
            sent = self.client.publish(TOPIC, b"message %d" % number, queue=number % QUEUES)
            assert sent.code == 0, sent.remark
        assert self.client.heartbeat("a-client", FIRST, TOPIC).code == 0
        wait_until(lambda: self.client.pull(TOPIC, EACH - 1, queue=1).code == 0, "all are there")
        for group in (FIRST, SECOND):
            self.must(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body(groupName=group))
        for group, offsets in ((FIRST, (2, 6)), (SECOND, (4, 1))):
            for queue, offset in enumerate(offsets):
                fields = {"consumerGroup": group, "topic": TOPIC, "queueId": queue}
                self.must(C.UPDATE_CONSUMER_OFFSET, {**fields, "commitOffset": offset})

    @property
    def is_old(self) -> bool:
        """Whether it is a broker of 4.9."""
        return self.kind == rocketmq.OLD

    def ask(
        self, code: RequestCode, fields: dict[str, Any] | None = None, body: bytes = b""
    ) -> Command:
        return self.client.ask(code, fields, body)

    def must(
        self, code: RequestCode, fields: dict[str, Any] | None = None, body: bytes = b""
    ) -> Any:
        """The body of a response, which has to be a success."""
        answer = self.ask(code, fields, body)
        assert answer.code == 0, (answer.code, answer.remark)
        return json.loads(javajson.legalise(bytes(answer.body))) if answer.body else None

    def committed(self, group: str) -> list[int | None]:
        """The offsets of a group."""
        fields = {"consumerGroup": group, "topic": TOPIC, "setZeroIfNotFound": "false"}
        found = [
            self.ask(C.QUERY_CONSUMER_OFFSET, {**fields, "queueId": each}) for each in range(QUEUES)
        ]
        return [None if each.code else int(each.fields["offset"]) for each in found]


@pytest.fixture(scope="module", params=[ROCKGATE, rocketmq.NAME, rocketmq.OLD])
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    if request.param == ROCKGATE:
        made = rockgate_broker(tmp_path_factory.mktemp("server"))
    else:
        made = apache_broker(request.param)
    with made as broker:
        found = Asked(request.param, broker)
        yield found
        found.client.socket.close()


def body(**values: Any) -> bytes:
    return json.dumps(values).encode()


def topic_of(name: str, **more: Any) -> dict[str, Any]:
    return {"topicName": name, "readQueueNums": 2, "writeQueueNums": 2, "perm": 6, **more}


def not_of_4_9(asked: Asked, *codes: RequestCode) -> bool:
    """Whether the broker is too old for these requests, and says so."""
    if not asked.is_old:
        return False
    found = {asked.ask(code).code for code in codes}
    assert found == {ResponseCode.REQUEST_CODE_NOT_SUPPORTED}
    return True


def test_topics_are_made_together_or_not_at_all(asked: Asked) -> None:
    """18."""
    if not_of_4_9(asked, C.UPDATE_AND_CREATE_TOPIC_LIST):
        return
    made = [topic_of("made-one"), topic_of("made-two", perm=4, readQueueNums=3)]
    asked.must(C.UPDATE_AND_CREATE_TOPIC_LIST, {}, body(topicConfigList=made))
    for each in made:
        found = asked.must(C.GET_TOPIC_CONFIG, {"topic": each["topicName"]})
        assert {name: found[name] for name in each} == each
    wrong = [topic_of("made-three"), topic_of("no name!")]
    answer = asked.ask(C.UPDATE_AND_CREATE_TOPIC_LIST, {}, body(topicConfigList=wrong))
    assert answer.code == ResponseCode.INVALID_PARAMETER
    found = asked.ask(C.GET_TOPIC_CONFIG, {"topic": "made-three"})
    assert found.code == ResponseCode.TOPIC_NOT_EXIST


def test_groups_are_set_together_or_not_at_all(asked: Asked) -> None:
    """225."""
    if not_of_4_9(asked, C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST):
        return
    made = [{"groupName": "set-one", "retryMaxTimes": 3}, {"groupName": "set-two", "brokerId": 0}]
    asked.must(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}, body(groupConfigList=made))
    settings = [
        asked.must(C.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": each["groupName"]}) for each in made
    ]
    assert [each["retryMaxTimes"] for each in settings] == [3, 16]
    assert sorted(settings[0]) == SETTINGS
    wrong = body(groupConfigList=[{"groupName": "set-three"}, {"groupName": "no name!"}])
    answer = asked.ask(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}, wrong)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert (
        "set-three" not in asked.must(C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)["subscriptionGroupTable"]
    )


SETTINGS = sorted(
    (
        *("groupName", "attributes", "brokerId", "consumeBroadcastEnable", "consumeEnable"),
        *("consumeFromMinEnable", "consumeMessageOrderly", "consumeTimeoutMinute"),
        *("groupRetryPolicy", "groupSysFlag", "notifyConsumerIdsChangedEnable"),
        *("retryMaxTimes", "retryQueueNums", "whichBrokerWhenConsumeSlowly"),
    )
)
"""The names of a group's settings."""


def test_the_lowest_offsets_of_groups_are_compared(asked: Asked) -> None:
    """308."""

    def lowest(topic: str, compared: str, **more: str) -> dict[str, int]:
        asked_for = {"topic": topic, "compareGroup": compared, **more}
        found: dict[str, int] = asked.must(C.QUERY_CORRECTION_OFFSET, asked_for)[
            "correctionOffsets"
        ]
        return found

    both = {"0": 2, "1": 1}
    assert lowest(TOPIC, FIRST) == lowest(TOPIC, SECOND) == lowest(TOPIC, "nobody") == both
    assert lowest(TOPIC, FIRST, filterGroups="others") == both
    assert lowest("nowhere", FIRST) == {}


def test_the_topics_of_a_group_and_what_it_wants_of_them_are_listed(asked: Asked) -> None:
    """343, 345."""
    if not_of_4_9(asked, C.QUERY_TOPICS_BY_CONSUMER, C.QUERY_SUBSCRIPTION_BY_CONSUMER):
        return
    for group, topics in ((FIRST, [TOPIC]), (SECOND, [TOPIC]), ("nobody", [])):
        found = asked.must(C.QUERY_TOPICS_BY_CONSUMER, {"group": group})["topicList"]
        assert [each for each in found if not each.startswith("%RETRY%")] == topics
    member, offline = (
        asked.must(C.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": group, "topic": TOPIC})
        for group in (FIRST, SECOND)
    )
    wanted = {
        "topic": TOPIC,
        "subString": "*",
        "subVersion": 1,
        "expressionType": "TAG",
        "classFilterMode": False,
        "codeSet": [],
        "tagsSet": [],
    }
    assert member == {"group": FIRST, "topic": TOPIC, "subscriptionData": wanted}
    assert offline == {"group": SECOND, "topic": TOPIC}


def test_a_group_is_forbidden_to_read_a_topic_and_allowed_again(asked: Asked) -> None:
    """353; Apache's brokers ask for it only where a pull has no expression of its own."""
    if not_of_4_9(asked, C.UPDATE_AND_GET_GROUP_FORBIDDEN):
        return
    fields = {"group": FIRST, "topic": TOPIC}

    def read(flags: int) -> Command:
        return asked.client.pull(TOPIC, 0, consumerGroup=FIRST, sysFlag=flags)

    def forbid(**more: str) -> Any:
        return asked.must(C.UPDATE_AND_GET_GROUP_FORBIDDEN, {**fields, **more})

    assert forbid() == {**fields, "readable": True}
    assert forbid(readable="false") == {**fields, "readable": False} == forbid()
    refused = read(0)
    assert refused.code == ResponseCode.NO_PERMISSION
    assert refused.remark == f"the consumer group[{FIRST}] is forbidden for topic[{TOPIC}]"
    assert (read(4).code == 0) == (asked.kind != ROCKGATE)
    assert forbid(readable="true") == {**fields, "readable": True}
    assert read(0).code == read(4).code == 0


def test_a_group_gets_the_offsets_of_another(asked: Asked) -> None:
    """314; of an unknown topic nothing is copied, and only we say so."""
    before = asked.committed(FIRST)
    fields = {"srcGroup": FIRST, "destGroup": "clones", "topic": TOPIC, "offline": "true"}
    asked.must(C.CLONE_GROUP_OFFSET, fields)
    assert asked.committed("clones") == before
    answer = asked.ask(C.CLONE_GROUP_OFFSET, {**fields, "topic": "nowhere"})
    assert answer.code == (ResponseCode.TOPIC_NOT_EXIST if asked.kind == ROCKGATE else 0)


def test_messages_that_wait_for_a_time_are_counted(asked: Asked) -> None:
    """61."""
    if not_of_4_9(asked, C.GET_TIMER_METRICS):
        return
    for _ in range(3):
        named = {"UNIQ_KEY": "waiting", "TIMER_DELAY_SEC": "600"}
        sent = asked.client.publish(TOPIC, b"later", properties=named)
        assert sent.code == 0, sent.remark

    def counts() -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = asked.must(C.GET_TIMER_METRICS)["timingCount"]
        return found

    # The broker counts a message when it is in its wheel.
    wait_until(lambda: counts().get(TOPIC, {}).get("count") == 3, "they are counted")
    assert sorted(counts()[TOPIC]) == ["count", "timeStamp"]
    assert sorted(asked.must(C.GET_TIMER_METRICS)) == ["dataVersion", "timingCount"]


def test_the_time_spans_of_queues_are_those_of_their_messages(asked: Asked) -> None:
    """303."""
    found = asked.must(C.QUERY_CONSUME_TIME_SPAN, {"topic": TOPIC, "group": SECOND})
    spans = {each["messageQueue"]["queueId"]: each for each in found["consumeTimeSpanSet"]}
    assert sorted(spans) == [0, 1]
    for each in spans.values():
        assert 0 < each["minTimeStamp"] <= each["consumeTimeStamp"] <= each["maxTimeStamp"]
        assert each["delayTime"] >= 0


FIGURES = {
    *("EndTransactionQueueSize", "EndTransactionThreadPoolQueueCapacity"),
    *("ackThreadPoolQueueCapacity", "ackThreadPoolQueueHeadWaitTimeMills"),
    *("ackThreadPoolQueueSize", "bootTimestamp", "brokerActive", "brokerVersionDesc"),
    *("commitLogDirCapacity", "commitLogDiskRatio", "commitLogMaxOffset"),
    *("commitLogMinOffset", "consumeQueueDiskRatio", "dispatchBehindBytes"),
    *("dispatchMaxBuffer", "earliestMessageTimeStamp", "getFoundTps"),
    *("getMessageEntireTimeMax", "getMissTps", "getTotalTps", "getTransferredTps"),
    *("litePullThreadPoolQueueCapacity", "litePullThreadPoolQueueHeadWaitTimeMills"),
    *("litePullThreadPoolQueueSize", "msgGetTotalTodayMorning", "msgGetTotalTodayNow"),
    *("msgGetTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow"),
    *("msgPutTotalYesterdayMorning", "pageCacheLockTimeMills"),
    *("pullThreadPoolQueueCapacity", "pullThreadPoolQueueHeadWaitTimeMills"),
    *("pullThreadPoolQueueSize", "putLatency99", "putLatency999", "putMessageAverageSize"),
    *("putMessageDistributeTime", "putMessageEntireTimeMax", "putMessageFailedTimes"),
    *("putMessageSizeTotal", "putMessageTimesTotal", "putTps"),
    *("queryThreadPoolQueueCapacity", "queryThreadPoolQueueHeadWaitTimeMills"),
    *("queryThreadPoolQueueSize", "remainHowManyDataToFlush"),
    *("remainTransientStoreBufferNumbs", "runtime", "sendThreadPoolQueueCapacity"),
    *("sendThreadPoolQueueHeadWaitTimeMills", "sendThreadPoolQueueSize"),
    *("startAcceptSendRequestTimeStamp", "timerCongestNum", "timerDequeueTps"),
    *("timerEnqueueTps", "timerOffsetBehind", "timerReadBehind"),
}
"""The names of 5.5.0, which has one more with the path of its log. 4.9 has fewer."""


def test_the_runtime_figures_have_the_same_names(asked: Asked) -> None:
    """28."""
    names = {each for each in asked.must(C.GET_BROKER_RUNTIME_INFO)["table"] if "/" not in each}
    if asked.kind == ROCKGATE:
        # Those of 4.9 too, which has a name with one r, and two of registrations.
        assert names - FIGURES == {"brokerRole", "brokerVersion", "getTransferedTps"}
        assert names >= FIGURES
    elif asked.is_old:
        assert names - FIGURES <= {"brokerVersion", "getTransferedTps"}
    else:
        assert names == FIGURES


def test_settings_are_changed_while_it_runs(asked: Asked) -> None:
    """25; Apache's brokers take any name."""
    asked.must(C.UPDATE_BROKER_CONFIG, {}, b"transactionCheckMax=7\n")
    lines = bytes(asked.ask(C.GET_BROKER_CONFIG).body).decode().splitlines()
    assert "transactionCheckMax=7" in lines
    answer = asked.ask(C.UPDATE_BROKER_CONFIG, {}, b"noSuchSetting=1\n")
    assert answer.code == (ResponseCode.NO_PERMISSION if asked.kind == ROCKGATE else 0)


@pytest.mark.parametrize(
    ("code", "fields", "expected"),
    [
        (C.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "nobody"}, 206),
        (C.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "nobody"}, 1),
        (C.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": FIRST, "clientId": "nobody"}, 1),
        (C.GET_TOPIC_STATS_INFO, {"topic": "nowhere"}, 17),
    ],
    ids=["203", "204", "307", "202"],
)
def test_who_is_not_there_is_reported_by_the_same_code(
    asked: Asked, code: RequestCode, fields: dict[str, str], expected: int
) -> None:
    assert asked.ask(code, fields).code == expected


DIFFERING = {
    # The broker's NullPointerException is SYSTEM_ERROR.
    C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: ({"topic": TOPIC, "group": "nobody"}, 206, 1, 1),
    # Any group may be reset here before it first reads.
    C.INVOKE_BROKER_TO_RESET_OFFSET: (
        {"topic": TOPIC, "group": "nobody", "timestamp": 0, "isForce": "true"},
        *(0, 26, 1),
    ),
    # The broker says nothing about a message that it does not find.
    C.RESUME_CHECK_HALF_MESSAGE: ({"topic": TOPIC, "msgId": "0" * 32}, 1, 0, 0),
}
"""Fields, and the codes of the server, of 5.5.0 and of 4.9.7."""


@pytest.mark.parametrize("code", DIFFERING)
def test_what_is_answered_otherwise_still_is(asked: Asked, code: RequestCode) -> None:
    fields, *codes = DIFFERING[code]
    kinds = (ROCKGATE, rocketmq.NAME, rocketmq.OLD)
    assert asked.ask(code, fields).code == codes[kinds.index(asked.kind)]


def test_a_half_message_that_was_given_up_is_checked_again(asked: Asked) -> None:
    """25 lets it be given up after one check; 323 has it checked from the start."""
    asked.must(C.UPDATE_BROKER_CONFIG, {}, b"transactionCheckMax=1\n")
    asked.must(
        C.UPDATE_BROKER_CONFIG, {}, b"transactionTimeOut=1000\ntransactionCheckInterval=1000\n"
    )
    named = {"UNIQ_KEY": "half", "TRAN_MSG": "true", "PGROUP": "producers", "WAIT": "true"}
    # The only producer of its group.
    producer = asked.client
    sent = producer.publish(TOPIC, b"half", properties=named, sys_flag=4)
    assert sent.code == 0, sent.remark

    def checks() -> int:
        # What the server has sent comes before the response.
        assert producer.heartbeat("a-client", FIRST, TOPIC).code == 0
        return sum(each.code == C.CHECK_TRANSACTION_STATE for each in producer.told)

    def given_up() -> Command:
        return asked.client.pull("TRANS_CHECK_MAX_TIME_TOPIC", 0, consumerGroup=FIRST)

    wait_until(lambda: checks() >= 1, "it is checked", 90)
    wait_until(lambda: given_up().code == 0, "it is given up", 90)
    [message] = messages(given_up())
    resumed = {"topic": TOPIC, "msgId": message.offset_message_id}
    asked.must(C.RESUME_CHECK_HALF_MESSAGE, resumed)
    wait_until(lambda: checks() >= 2, "it is checked once more", 90)
