import pytest

from rockgate.gateway.kafka.configs.checks import GROUPS, TOPICS
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode


def refusal(*given: tuple[str, str | None]) -> str:
    with pytest.raises(RequestError) as caught:
        TOPICS.read_all(given)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.reason


def test_what_is_given_is_kept_in_its_one_form() -> None:
    given = [("retention.ms", " 60000 "), ("preallocate", "True"), ("message.type", "DELAY")]
    assert TOPICS.read_all(given) == {
        "retention.ms": "60000",
        "preallocate": "true",
        "message.type": "DELAY",
    }


def test_of_a_config_given_twice_the_last_holds() -> None:
    assert TOPICS.read_all([("segment.ms", "1"), ("segment.ms", "2")]) == {"segment.ms": "2"}


def test_an_unknown_config_is_refused_with_the_nearest() -> None:
    assert refusal(("retention.msec", "1")) == (
        "Unknown topic config 'retention.msec'; did you mean 'retention.ms'?"
    )
    assert refusal(("zzz", "1")) == "Unknown topic config 'zzz'."
    assert len(refusal(("x" * 30_000, "1"))) < 200


def test_a_wrong_value_is_refused_with_the_config_and_what_it_wants() -> None:
    assert refusal(("retention.ms", "soon")) == (
        "Config retention.ms must be an integer of at least -1, not 'soon'."
    )
    assert refusal(("remote.storage.enable", "true")) == (
        "Config remote.storage.enable must be false, not 'true'."
    )


def test_a_config_without_a_value_is_refused() -> None:
    assert refusal(("retention.ms", None)) == "Config retention.ms requires a value."
    assert refusal(("retention.msec", None)).startswith("Unknown topic config")


def test_configs_that_contradict_each_other_are_refused() -> None:
    reason = refusal(("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5"))
    assert reason == "min.compaction.lag.ms (10) must not exceed max.compaction.lag.ms (5)."
    TOPICS.check_together({"min.compaction.lag.ms": "10"})


def test_one_config_can_be_asked_for() -> None:
    assert TOPICS.known("retention.ms").default == "604800000"
    assert TOPICS.read_value("cleanup.policy", "compact, delete") == "compact,delete"


def test_each_type_of_resource_has_a_table_of_its_own() -> None:
    assert "consumer.session.timeout.ms" in GROUPS and "retention.ms" not in GROUPS
    with pytest.raises(RequestError, match="Unknown group config"):
        GROUPS.read_value("retention.ms", "1")


def test_only_a_list_is_added_to() -> None:
    TOPICS.check_list("cleanup.policy")
    with pytest.raises(RequestError, match="is not a list") as caught:
        TOPICS.check_list("segment.ms")
    assert caught.value.code is ErrorCode.INVALID_CONFIG
