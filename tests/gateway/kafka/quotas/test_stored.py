import pytest
from tests.gateway.kafka.admin import Admin

from rockgate.gateway.kafka.quotas import stored
from rockgate.gateway.kafka.quotas.entities import Entity
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

RATE = "producer_byte_rate"
ORDER: list[tuple[Entity, tuple[str, str]]] = [
    ((("client-id", "c"), ("user", "u")), ("u", "c")),
    ((("client-id", None), ("user", "u")), ("u", "c")),
    ((("user", "u"),), ("u", "")),
    ((("client-id", "c"), ("user", None)), ("u", "c")),
    ((("client-id", None), ("user", None)), ("u", "c")),
    ((("user", None),), ("u", "")),
    ((("client-id", "c"),), ("", "c")),
    ((("client-id", None),), ("", "c")),
]


def test_the_most_specific_quota_holds() -> None:
    admin = Admin()
    for number, (entity, _) in enumerate(ORDER):
        admin.quotas.put({entity: {RATE: number + 1.0}})
    for number, (entity, sharer) in enumerate(ORDER):
        assert admin.quotas.limit(RATE, "u", "c") == (number + 1.0, sharer)
        admin.quotas.put({entity: {}})
    assert admin.quotas.limit(RATE, "u", "c") is None
    assert len(admin.quotas) == 0


def test_each_quota_is_looked_for_by_itself() -> None:
    admin = Admin()
    admin.quotas.put({ORDER[0][0]: {"request_percentage": 5.0}, ORDER[7][0]: {RATE: 9.0}})
    assert admin.quotas.limit(RATE, "u", "c") == (9.0, ("", "c"))
    assert admin.quotas.limit("request_percentage", "u", "c") == (5.0, ("u", "c"))
    assert admin.quotas.limit("request_percentage", "u", "other") is None


def test_an_address_has_its_own_quota_or_that_of_all() -> None:
    admin, quota = Admin(), "connection_creation_rate"
    assert admin.quotas.address_limit(quota, "10.0.0.1") is None
    admin.quotas.put({(("ip", None),): {quota: 5.0}, (("ip", "10.0.0.1"),): {quota: 1.0}})
    assert admin.quotas.address_limit(quota, "10.0.0.1") == 1.0
    assert admin.quotas.address_limit(quota, "10.0.0.2") == 5.0


def test_quotas_are_there_after_a_restart() -> None:
    admin = Admin()
    admin.quotas.put({ORDER[1][0]: {RATE: 7.0}})
    admin.reopen()
    assert dict(admin.quotas.items()) == {ORDER[1][0]: {RATE: 7.0}}
    assert admin.throttling.is_on


def test_there_is_an_end_to_how_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "ENTITIES_MAX", 1)
    admin = Admin()
    admin.quotas.put({ORDER[2][0]: {RATE: 7.0}})
    with pytest.raises(RequestError) as caught:
        admin.quotas.put({ORDER[5][0]: {RATE: 7.0}})
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
