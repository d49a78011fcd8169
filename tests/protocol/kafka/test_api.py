import pytest

from rockgate.protocol.kafka.api import (
    APIS,
    ApiKey,
    request_header_version,
    response_header_version,
)
from rockgate.protocol.kafka.schema import declaration_of


def test_the_table_has_every_key_once_in_order() -> None:
    assert list(APIS) == sorted(APIS) == list(ApiKey)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_row_agrees_with_its_messages(api: object) -> None:
    row = APIS[api.key]  # type: ignore[attr-defined]
    assert row.request.__name__ == f"{row.name}Request"
    assert row.response.__name__ == f"{row.name}Response"
    assert row.name.upper() == row.key.name.replace("_", "")
    for message in (row.request, row.response):
        declaration = declaration_of(message)
        assert (declaration.key, declaration.versions) == (row.key, row.versions)
        module = message.__module__.rsplit(".", 1)[-1]
        assert module.upper() == row.key.name


def test_only_produce_advertises_more_than_is_declared() -> None:
    wider = {key for key, api in APIS.items() if api.advertised != api.versions}
    assert wider == {ApiKey.PRODUCE}
    assert str(APIS[ApiKey.PRODUCE].advertised) == "0-13"


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.METADATA, 8, 1, 0),
        (ApiKey.METADATA, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.SHARE_FETCH, 1, 2, 1),
    ],
)
def test_flexible_versions_have_the_longer_headers_but_for_api_versions(
    key: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header
