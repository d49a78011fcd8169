import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.protocol.kafka.values import values

from rockgate.protocol.kafka.api import APIS, ApiKey, request_header_version
from rockgate.protocol.kafka.connection import (
    RequestHeader,
    ResponseHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    encode_response_lead,
)
from rockgate.protocol.kafka.errors import MalformedFrame, ProtocolError, UnsupportedVersion
from rockgate.protocol.kafka.schema import decode, encode

CALLS = st.sampled_from([(api, version) for api in APIS.values() for version in api.versions])


@settings(deadline=None, max_examples=budget("property_examples"))
@given(call=CALLS, header=values(RequestHeader, 1))
def test_the_hand_codec_of_request_headers_equals_the_declaration(
    call: tuple[object, int], header: RequestHeader
) -> None:
    api, version = call
    header.api_key, header.api_version = api.key, version  # type: ignore[attr-defined]
    declared = encode(header, request_header_version(ApiKey(header.api_key), version))
    assert encode_request_header(header) == declared
    assert decode_request_header(memoryview(declared + b"body")) == (header, len(declared))


@settings(deadline=None, max_examples=budget("property_examples"))
@given(call=CALLS, correlation_id=st.integers(-(1 << 31), (1 << 31) - 1))
def test_the_hand_codec_of_response_headers_equals_the_declaration(
    call: tuple[object, int], correlation_id: int
) -> None:
    api, version = call
    key = api.key  # type: ignore[attr-defined]
    header_version = int(version in APIS[key].flexible and key != ApiKey.API_VERSIONS)
    declared = encode(ResponseHeader(correlation_id=correlation_id), header_version)
    assert encode_response_header(key, version, correlation_id) == declared
    assert decode_response_header(key, version, declared + b"body") == (
        correlation_id,
        len(declared),
    )
    assert decode(ResponseHeader, header_version, declared).correlation_id == correlation_id
    lead = encode_response_lead(key, version, correlation_id, 17)
    assert lead == (len(declared) + 17).to_bytes(4) + declared


def test_the_response_to_api_versions_never_has_tagged_fields_in_its_header() -> None:
    assert encode_response_header(ApiKey.API_VERSIONS, 4, 1) == b"\0\0\0\1"
    assert encode_response_header(ApiKey.METADATA, 12, 1) == b"\0\0\0\1\0"


def test_tagged_fields_of_a_request_header_are_stepped_over() -> None:
    plain = encode_request_header(RequestHeader(api_key=3, api_version=12, client_id="c"))
    tagged = plain[:-1] + b"\x02\x00\x03abc\x07\x00"
    assert decode_request_header(tagged) == (decode_request_header(plain)[0], len(tagged))


def test_an_api_key_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="API key 999 version 0 is not supported"):
        decode_request_header(b"\x03\xe7\0\0\0\0\0\1\xff\xff")


def test_a_version_above_the_advertised_is_refused_except_of_api_versions() -> None:
    with pytest.raises(UnsupportedVersion):
        decode_request_header(b"\0\3\0\x63\0\0\0\1\xff\xff\0")
    header, start = decode_request_header(b"\0\x12\0\x63\0\0\0\1\xff\xff\0")
    assert (header.api_version, start) == (99, 11)


def test_produce_below_3_has_a_header_because_it_is_advertised() -> None:
    header, start = decode_request_header(b"\0\0\0\1\0\0\0\1\xff\xff")
    assert (header.api_key, header.api_version, start) == (0, 1, 10)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "truncated at 0 bytes"),
        (b"\0\3\0\x0c\0\0\0\1\xff\xff", "truncated at 10 bytes"),
        (b"\0\3\0\1\0\0\0\1\xff\xfe", "Client id has size -2"),
        (b"\0\3\0\1\0\0\0\1\0\x05abc", "Client id of 5 bytes exceeds the frame of 13"),
        (b"\0\3\0\1\0\0\0\1\0\x01\xff", "utf-8"),
        (b"\0\3\0\x0c\0\0\0\1\xff\xff\xff\xff\xff\xff\xff\x01", "varint over 5 bytes"),
        (b"\0\3\0\x0c\0\0\0\1\xff\xff\x01\x00\x7f", "length 127 exceeds the 0 bytes left"),
    ],
)
def test_a_header_that_cannot_be_read_says_why(frame: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrame, match=reason):
        decode_request_header(frame)


@settings(deadline=None, max_examples=budget("property_examples"))
@given(frame=st.binary(max_size=40))
def test_no_bytes_make_a_header_raise_anything_else(frame: bytes) -> None:
    for lead in (b"", b"\0\3\0\x0c", b"\0\x12\0\x04"):
        try:
            _, start = decode_request_header(lead + frame)
        except ProtocolError:
            continue
        assert start <= len(lead + frame)
