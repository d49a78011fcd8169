import pytest

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.handlers.api_versions import ApiVersions, unsupported
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.kafka.versions import Versions

ADVERTISED = {ApiKey.PRODUCE: Versions(0, 13), ApiKey.API_VERSIONS: Versions(0, 4)}


def call(version: int) -> Call:
    return Call(version, "me", Peer(connection_id=1, local=Address("a", 1), remote=Address("b", 2)))


def request(name: str = "librdkafka", version: str = "2.15.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_what_is_advertised_is_listed_in_every_version(version: int) -> None:
    response = ApiVersions(ADVERTISED).handle(request(), call(version))
    read = decode(ApiVersionsResponse, version, encode(response, version))
    assert read.error_code == 0
    assert read.api_keys == [
        ApiVersion(api_key=0, min_version=0, max_version=13),
        ApiVersion(api_key=18, min_version=0, max_version=4),
    ]


@pytest.mark.parametrize(
    ("name", "version"),
    [("apache-kafka-java", "4.3.1"), ("a", "1"), ("A.b-C", "0.0.0-SNAPSHOT")],
)
def test_the_software_of_the_client_is_kept_with_its_connection(name: str, version: str) -> None:
    asked = call(3)
    assert ApiVersions(ADVERTISED).handle(request(name, version), asked).error_code == 0
    assert (asked.peer.software, asked.peer.software_version) == (name, version)


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1\n"), ("é", "1")],
)
def test_a_name_that_is_none_is_an_invalid_request(name: str, version: str) -> None:
    asked = call(4)
    response = ApiVersions(ADVERTISED).handle(request(name, version), asked)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.api_keys == []
    assert asked.peer.software == "unknown"


def test_before_v3_there_is_no_name_to_check() -> None:
    assert ApiVersions(ADVERTISED).handle(request("", ""), call(2)).error_code == 0


def test_a_version_that_is_not_served_is_answered_in_v0_with_the_range_to_ask_in() -> None:
    response = decode(ApiVersionsResponse, 0, b"".join(unsupported()))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.api_keys == [ApiVersion(api_key=18, min_version=0, max_version=4)]


def test_the_table_of_handlers_is_in_key_order_and_serves_no_more_than_it_advertises() -> None:
    keys = [row.key for row in HANDLERS]
    assert keys == sorted(set(keys)) and ApiKey.API_VERSIONS in keys
    for row in HANDLERS:
        assert row.versions & row.advertised == row.versions


def features(version: int, *keys: ApiKey) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    served = {key: Versions(0, 1) for key in (ApiKey.API_VERSIONS, *keys)}
    response = ApiVersions(served).handle(request(), call(version))
    read = decode(ApiVersionsResponse, version, encode(response, version))
    supported = {
        each.name: (each.min_version, each.max_version) for each in read.supported_features
    }
    finalized = {each.name: each.max_version_level for each in read.finalized_features}
    return supported, finalized


def test_the_features_are_those_of_a_new_cluster_of_kafka_4_3() -> None:
    # As a broker of 4.3.1 answered.
    supported, finalized = features(
        4,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.INIT_PRODUCER_ID,
    )
    assert supported == {
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 30),
        "share.version": (0, 1),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
        "eligible.leader.replicas.version": (0, 1),
    }
    del supported["kraft.version"]
    assert finalized == {name: high for name, (_, high) in supported.items()}


def test_a_feature_is_there_with_its_api_and_before_v4_without_those_that_begin_at_0() -> None:
    assert "group.version" not in features(4)[0]
    assert features(3, ApiKey.CONSUMER_GROUP_HEARTBEAT)[0] == {"metadata.version": (7, 30)}
    assert features(3, ApiKey.CONSUMER_GROUP_HEARTBEAT)[1]["group.version"] == 1
