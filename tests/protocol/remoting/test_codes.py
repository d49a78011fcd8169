import pytest

from rockgate.protocol import entry
from rockgate.protocol.remoting import properties
from rockgate.protocol.remoting.codes import (
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    Language,
    RequestCode,
    ResponseCode,
    request_name,
    response_name,
)


def test_a_code_has_its_name_for_people_and_an_unknown_one_its_number() -> None:
    assert request_name(310) == "SEND_MESSAGE_V2"
    assert request_name(99999) == "99999"
    assert response_name(19) == "PULL_NOT_FOUND"
    assert response_name(-7) == "-7"


def test_no_two_codes_share_a_number() -> None:
    for codes in (RequestCode, ResponseCode, Language):
        assert len(codes.__members__) == len(list(codes))


def test_languages_have_rocketmq_s_bytes() -> None:
    assert (Language.JAVA, Language.PYTHON, Language.OTHER, Language.GO) == (0, 3, 7, 9)


# Apache RocketMQ's own numbers and names, written down from its documentation and not from ours.
REQUESTS = {
    "SEND_MESSAGE": 10,
    "PULL_MESSAGE": 11,
    "QUERY_MESSAGE": 12,
    "QUERY_CONSUMER_OFFSET": 14,
    "UPDATE_CONSUMER_OFFSET": 15,
    "SEARCH_OFFSET_BY_TIMESTAMP": 29,
    "GET_MAX_OFFSET": 30,
    "GET_MIN_OFFSET": 31,
    "HEART_BEAT": 34,
    "CONSUMER_SEND_MSG_BACK": 36,
    "END_TRANSACTION": 37,
    "GET_CONSUMER_LIST_BY_GROUP": 38,
    "CHECK_TRANSACTION_STATE": 39,
    "NOTIFY_CONSUMER_IDS_CHANGED": 40,
    "LOCK_BATCH_MQ": 41,
    "UNLOCK_BATCH_MQ": 42,
    "PUT_KV_CONFIG": 100,
    "GET_KV_CONFIG": 101,
    "DELETE_KV_CONFIG": 102,
    "REGISTER_BROKER": 103,
    "UNREGISTER_BROKER": 104,
    "GET_ROUTEINFO_BY_TOPIC": 105,
    "GET_BROKER_CLUSTER_INFO": 106,
    "WIPE_WRITE_PERM_OF_BROKER": 205,
    "GET_ALL_TOPIC_LIST_FROM_NAMESERVER": 206,
    "DELETE_TOPIC_IN_NAMESRV": 216,
    "GET_KVLIST_BY_NAMESPACE": 219,
    "GET_TOPICS_BY_CLUSTER": 224,
    "GET_SYSTEM_TOPIC_LIST_FROM_NS": 304,
    "SEND_MESSAGE_V2": 310,
    "GET_UNIT_TOPIC_LIST": 311,
    "GET_HAS_UNIT_SUB_TOPIC_LIST": 312,
    "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST": 313,
    "UPDATE_NAMESRV_CONFIG": 318,
    "GET_NAMESRV_CONFIG": 319,
    "QUERY_DATA_VERSION": 322,
}
RESPONSES = {
    "SUCCESS": 0,
    "SYSTEM_ERROR": 1,
    "SYSTEM_BUSY": 2,
    "REQUEST_CODE_NOT_SUPPORTED": 3,
    "FLUSH_DISK_TIMEOUT": 10,
    "SLAVE_NOT_AVAILABLE": 11,
    "FLUSH_SLAVE_TIMEOUT": 12,
    "MESSAGE_ILLEGAL": 13,
    "SERVICE_NOT_AVAILABLE": 14,
    "NO_PERMISSION": 16,
    "TOPIC_NOT_EXIST": 17,
    "PULL_NOT_FOUND": 19,
    "PULL_RETRY_IMMEDIATELY": 20,
    "PULL_OFFSET_MOVED": 21,
}
PROPERTIES = "KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP UNIQ_KEY"
PROPERTIES += " RECONSUME_TIME MAX_RECONSUME_TIMES"


@pytest.mark.row("U-18")
def test_codes_are_rocketmqs() -> None:
    assert {name: RequestCode[name].value for name in REQUESTS} == REQUESTS
    assert {name: ResponseCode[name].value for name in RESPONSES} == RESPONSES


@pytest.mark.row("U-18")
def test_flags_and_properties_are_rocketmqs() -> None:
    assert (RESPONSE_FLAG, ONEWAY_FLAG) == (1, 2)
    assert (entry.COMPRESSED, entry.MULTI_TAGS) == (1, 2)
    transaction = entry.TRANSACTION_PREPARED, entry.TRANSACTION_COMMIT, entry.TRANSACTION_ROLLBACK
    assert transaction == (4, 8, 12)
    assert (entry.BORN_HOST_V6, entry.STORE_HOST_V6) == (16, 32)
    names = {value for value in vars(properties).values() if isinstance(value, str)}
    assert set(PROPERTIES.split()) <= names
    assert entry.pack_properties([("a", "b"), ("c", "d")]) == b"a\x01b\x02c\x01d\x02"
