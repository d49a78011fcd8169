"""A server that authorizes, as a process: a client without a grant gets nothing."""

from pathlib import Path

from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


def test_authorization_that_is_on_refuses_a_client_without_grants(tmp_path: Path) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    with (
        RunningServer(tmp_path, settings=["security.authorization=on"]) as server,
        RawClient(server) as client,
    ):
        answer = client.call(ApiKey.METADATA, 12, request, MetadataResponse)
        (topic,) = answer.topics
        assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED  # type: ignore[union-attr]
