"""The table of APIs: what exists, in which versions, under which header.

Adding an API is a module in `messages` and a line here; everything that must hold for every API
(headers, oracle tests, hostile input, documentation) is computed from this table.
"""

from dataclasses import dataclass
from typing import Any

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rockgate.protocol.kafka.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from rockgate.protocol.kafka.messages.fetch import FetchRequest, FetchResponse
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataResponse
from rockgate.protocol.kafka.messages.produce import ProduceRequest, ProduceResponse
from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.versions import Versions

__all__ = [
    "APIS",
    "Api",
    "ApiKey",
    "request_header_version",
    "response_header_version",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API: its two messages, and the versions that exist of them."""

    key: ApiKey
    name: str
    request: type[Any]
    response: type[Any]
    versions: Versions
    """The versions that are declared and can be decoded."""
    advertised: Versions
    """What a broker that serves all of `versions` says it serves; wider for Produce alone."""
    flexible: Versions


def _api(request: type[Any], response: type[Any], advertised: str | None = None) -> Api:
    asked, answered = declaration_of(request), declaration_of(response)
    assert asked.key is not None and asked.key == answered.key, request
    assert asked.versions == answered.versions, request
    assert asked.flexible == answered.flexible, request
    return Api(
        key=asked.key,
        name=asked.name.removesuffix("Request"),
        request=request,
        response=response,
        versions=asked.versions,
        advertised=Versions.parse(advertised) if advertised else asked.versions,
        flexible=asked.flexible,
    )


APIS: dict[ApiKey, Api] = {
    api.key: api
    for api in (
        # Versions 0-2 are advertised and refused, as Kafka does: librdkafka before 2.11.1 takes
        # their absence for a broker that cannot read compressed batches (KAFKA-18659).
        _api(ProduceRequest, ProduceResponse, advertised="0-13"),
        _api(FetchRequest, FetchResponse),
        _api(ListOffsetsRequest, ListOffsetsResponse),
        _api(MetadataRequest, MetadataResponse),
        _api(ApiVersionsRequest, ApiVersionsResponse),
        _api(CreateTopicsRequest, CreateTopicsResponse),
        _api(InitProducerIdRequest, InitProducerIdResponse),
    )
}


def request_header_version(key: ApiKey, version: int) -> int:
    """2 for flexible versions, which end their header with tagged fields; 1 for the others."""
    return 2 if version in APIS[key].flexible else 1


def response_header_version(key: ApiKey, version: int) -> int:
    """1 for flexible versions, 0 for the others and always for ApiVersions.

    A client reads the response to its first ApiVersions before it knows what the server speaks, so
    that one header never changes (KIP-511).
    """
    return 1 if version in APIS[key].flexible and key is not ApiKey.API_VERSIONS else 0
