import pytest
from tests.gateway.kafka.admin import Admin

from rockgate.gateway.kafka.configs import stored
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

GROUP, OTHER = 32, 16


def test_what_is_set_for_a_resource_is_there_after_a_restart() -> None:
    admin = Admin()
    admin.configs.put(GROUP, {"g": {"x": "1"}, "h": {"y": "2"}})
    admin.configs.put(OTHER, {"g": {"z": "3"}})
    admin.configs.put(GROUP, {"h": {}})
    admin.reopen()
    assert admin.configs.of(GROUP, "g") == {"x": "1"}
    assert admin.configs.of(GROUP, "h") == {}
    assert list(admin.configs.names(GROUP)) == ["g"]
    assert list(admin.configs.names(OTHER)) == ["g"]


def test_there_is_an_end_to_how_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "RESOURCES_MAX", 1)
    admin = Admin()
    admin.configs.put(GROUP, {"g": {"x": "1"}})
    with pytest.raises(RequestError) as caught:
        admin.configs.put(GROUP, {"h": {"x": "1"}})
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
