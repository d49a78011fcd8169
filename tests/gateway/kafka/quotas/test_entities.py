import pytest

from rockgate.gateway.kafka.quotas.entities import Part, check_quota, read_entity
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

CLIENT = (("client-id", "c"),)
ADDRESS = (("ip", "10.0.0.1"),)


def test_an_entity_has_its_parts_in_order_of_type() -> None:
    assert read_entity([("user", "u"), ("client-id", None)]) == (
        ("client-id", None),
        ("user", "u"),
    )
    assert read_entity([("client-id", "a"), ("client-id", "b")]) == (("client-id", "b"),)
    assert read_entity([("ip", "::0001")]) == (("ip", "::1"),)
    assert read_entity([("ip", None)]) == (("ip", None),)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "at least one component"),
        ([("nobody", "x")], "Unknown entity type nobody"),
        ([("client-id", "")], "client-id must not be empty"),
        ([("user", "u" * 1_001)], "exceeds 1,000"),
        ([("ip", "localhost")], "not an IP address"),
        ([("ip", "10.0.0.1"), ("user", "u")], "cannot be combined"),
    ],
)
def test_what_is_no_entity_is_refused(parts: list[Part], reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        read_entity(parts)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("entity", "quota", "value"),
    [
        (CLIENT, "producer_byte_rate", 100.0),
        (CLIENT, "consumer_byte_rate", 2.0**62),
        (CLIENT, "request_percentage", 0.5),
        (CLIENT, "controller_mutation_rate", 2.5),
        (ADDRESS, "connection_creation_rate", 5.0),
    ],
)
def test_quotas_are_numbers_above_zero(entity: tuple[Part, ...], quota: str, value: float) -> None:
    check_quota(entity, quota, value)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(RequestError, match="must be greater than 0"):
            check_quota(entity, quota, wrong)


@pytest.mark.parametrize(
    ("entity", "quota", "value", "reason"),
    [
        (CLIENT, "producer_byte_rate", 1.5, "integer"),
        (CLIENT, "producer_byte_rate", 99.0, "the minimum is 100"),
        (CLIENT, "producer_byte_rate", 1e300, "integer"),
        (ADDRESS, "connection_creation_rate", 5.5, "integer"),
        (
            CLIENT,
            "connection_creation_rate",
            5.0,
            "Unknown quota connection_creation_rate for user",
        ),
        (ADDRESS, "producer_byte_rate", 5.0, "Unknown quota producer_byte_rate for ip"),
        (CLIENT, "nothing", 5.0, "Unknown quota nothing"),
    ],
)
def test_what_is_no_quota_is_refused(
    entity: tuple[Part, ...], quota: str, value: float, reason: str
) -> None:
    with pytest.raises(RequestError, match=reason):
        check_quota(entity, quota, value)
