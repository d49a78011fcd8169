import msgspec
import pytest

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.offsets import SearchOffsetHeader
from rockgate.protocol.remoting.headers.pull import PulledHeader
from rockgate.protocol.remoting.headers.send import SendHeader, SendHeaderV2

FIELDS = {"topic": "t", "queueId": "3", "timestamp": "17"}


def test_texts_become_what_they_mean() -> None:
    read = headers.read(Command(29, FIELDS), SearchOffsetHeader)
    assert read == SearchOffsetHeader(topic="t", queue_id=3, timestamp=17, boundary_type="LOWER")


def test_a_field_that_no_one_declared_is_passed_over() -> None:
    assert headers.read(Command(29, {**FIELDS, "bname": "x"}), SearchOffsetHeader).queue_id == 3


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "missing required field `topic`"),
        ({**FIELDS, "queueId": "x"}, "Expected `int`, got `str` - at `$.queueId`"),
        ({**FIELDS, "queueId": str(2**31)}, "Expected `int` <= 2147483647 - at `$.queueId`"),
        ({**FIELDS, "timestamp": "1" * 40}, "Expected `int` <= 9223372036854775807"),
        ({**FIELDS, "queueId": "9" * 5000}, "Integer value out of range - at `$.queueId`"),
    ],
)
def test_a_field_that_is_missing_or_wrong_is_named(fields: dict[str, str], reason: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        headers.read(Command(29, fields), SearchOffsetHeader)
    assert str(refused.value).startswith("SEARCH_OFFSET_BY_TIMESTAMP is invalid: ")
    assert reason in str(refused.value)


def test_none_is_left_out_and_a_boolean_is_a_word() -> None:
    header = PulledHeader(next_begin_offset=1, min_offset=0, max_offset=2)
    assert headers.write(header) == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "1",
        "minOffset": "0",
        "maxOffset": "2",
    }
    written = headers.write(SearchOffsetHeader(topic="t", queue_id=0, timestamp=1))
    assert written["boundaryType"] == "LOWER"


def test_both_forms_of_a_send_have_the_same_fields() -> None:
    long, short = (
        {field.name for field in msgspec.structs.fields(kind)}
        for kind in (SendHeader, SendHeaderV2)
    )
    assert long == short
    assert {field.encode_name for field in msgspec.structs.fields(SendHeaderV2)} == set(
        "abcdefghijklmn"
    )


def test_every_code_of_a_header_is_a_code_of_rocketmq() -> None:
    assert {*headers.REQUESTS, *headers.ANSWERS} <= {code.value for code in RequestCode}


KINDS = dict.fromkeys((*headers.REQUESTS.values(), *headers.ANSWERS.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_header_is_bounded(kind: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(kind):
        assert "<class 'int'>" not in str(field.type) or "Meta" in str(field.type), field.name
