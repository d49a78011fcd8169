import pytest

from rockgate.gateway.kafka.configchecks import check_together, known, read_all, read_value
from rockgate.gateway.kafka.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode


def refusal(*given: tuple[str, str | None]) -> str:
    with pytest.raises(RequestError) as caught:
        read_all(given)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.reason


def test_what_is_given_is_kept_in_its_one_form() -> None:
    given = [("retention.ms", " 60000 "), ("preallocate", "True"), ("message.type", "DELAY")]
    assert read_all(given) == {
        "retention.ms": "60000",
        "preallocate": "true",
        "message.type": "DELAY",
    }


def test_of_a_config_given_twice_the_last_holds() -> None:
    assert read_all([("segment.ms", "1"), ("segment.ms", "2")]) == {"segment.ms": "2"}


def test_an_unknown_config_is_refused_with_the_nearest() -> None:
    assert refusal(("retention.msec", "1")) == (
        "unknown topic config 'retention.msec'; did you mean 'retention.ms'?"
    )
    assert refusal(("zzz", "1")) == "unknown topic config 'zzz'"
    assert len(refusal(("x" * 30_000, "1"))) < 200


def test_a_wrong_value_is_refused_with_the_config_and_what_it_wants() -> None:
    assert refusal(("retention.ms", "soon")) == (
        "retention.ms wants a whole number of at least -1, not 'soon'"
    )
    assert refusal(("remote.storage.enable", "true")) == (
        "remote.storage.enable wants false, not 'true'"
    )


def test_a_config_without_a_value_is_refused() -> None:
    assert refusal(("retention.ms", None)) == "retention.ms has no value"
    assert refusal(("retention.msec", None)).startswith("unknown topic config")


def test_configs_that_contradict_each_other_are_refused() -> None:
    reason = refusal(("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5"))
    assert reason == "min.compaction.lag.ms 10 is above max.compaction.lag.ms 5"
    check_together({"min.compaction.lag.ms": "10"})


def test_one_config_can_be_asked_for() -> None:
    assert known("retention.ms").default == "604800000"
    assert read_value("cleanup.policy", "compact, delete") == "compact,delete"
