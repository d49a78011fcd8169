import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.kafka.configs.types import VALUE_SIZE_MAX, ConfigKind, ConfigType, items_of

LONG = ConfigType(kind=ConfigKind.LONG, low=-1)
LEVEL = ConfigType(kind=ConfigKind.INT, low=1, high=9, also=-1)
RATIO = ConfigType(kind=ConfigKind.DOUBLE, low=0, high=1)
FLAG = ConfigType(kind=ConfigKind.BOOLEAN)
WORD = ConfigType(kind=ConfigKind.STRING, choices=("CreateTime", "LogAppendTime"))
TEXT = ConfigType(kind=ConfigKind.STRING)
POLICY = ConfigType(kind=ConfigKind.LIST, choices=("compact", "delete"))
LIST = ConfigType(kind=ConfigKind.LIST)
REPLICAS = ConfigType(kind=ConfigKind.LIST, is_replicas=True)
ALL = (LONG, LEVEL, RATIO, FLAG, WORD, TEXT, POLICY, LIST, REPLICAS)


@pytest.mark.parametrize(
    ("type_", "text", "kept"),
    [
        (LONG, " 5 ", "5"),
        (LONG, "+007", "7"),
        (LONG, "-0", "0"),
        (LONG, "9223372036854775807", "9223372036854775807"),
        (LEVEL, "-1", "-1"),
        (RATIO, "1e-1", "0.1"),
        (RATIO, "1", "1.0"),
        (FLAG, "TRUE", "true"),
        (WORD, "LogAppendTime", "LogAppendTime"),
        (TEXT, " any ", "any"),
        (POLICY, "", ""),
        (POLICY, " delete , compact,delete", "delete,compact"),
        (REPLICAS, "*", "*"),
        (REPLICAS, "0:1, 1:2", "0:1,1:2"),
        (LIST, "a, b", "a,b"),
    ],
)
def test_a_value_is_kept_in_one_form(type_: ConfigType, text: str, kept: str) -> None:
    assert type_.read(text) == kept


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        (LONG, "soon", "must be an integer of at least -1, not 'soon'"),
        (LONG, "-2", "must be an integer of at least -1, not '-2'"),
        (LONG, "1_000", "not '1_000'"),
        (LONG, "\u0661", "must be an integer"),
        (LONG, "", "not ''"),
        (LONG, "9" * 5000, "must be an integer"),
        (LONG, "9223372036854775808", "must be a 64-bit integer"),
        (LEVEL, "2147483648", "must be a 32-bit integer"),
        (LEVEL, "0", "must be an integer from 1 to 9, or -1, not '0'"),
        (RATIO, "NaN", "must be a number from 0 to 1"),
        (RATIO, "inf", "must be a number from 0 to 1"),
        (RATIO, "half", "must be a number from 0 to 1, not 'half'"),
        (FLAG, "yes", "must be true or false, not 'yes'"),
        (WORD, "createtime", "must be one of CreateTime, LogAppendTime, not 'createtime'"),
        (POLICY, "squeeze", "must be a list of compact, delete, not 'squeeze'"),
        (POLICY, "delete,", "must be a list of compact, delete"),
        (LIST, "a,,b", "must not contain empty elements"),
        (REPLICAS, "0:1,x", "must be '\\*' or a list of PARTITION:BROKER"),
        (TEXT, "x" * (VALUE_SIZE_MAX + 1), "must not exceed 32,767 characters"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_is_wanted(
    type_: ConfigType, text: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        type_.read(text)


def test_a_long_value_is_cut_in_the_refusal() -> None:
    with pytest.raises(ValueError) as caught:
        WORD.read("x" * 10_000)
    assert len(str(caught.value)) < 200


@given(st.sampled_from(ALL), st.text(max_size=40))
@settings(max_examples=budget("property_examples"), deadline=None)
def test_what_was_read_reads_as_itself_again(type_: ConfigType, text: str) -> None:
    try:
        kept = type_.read(text)
    except ValueError:
        return
    assert type_.read(kept) == kept


def test_an_empty_text_is_a_list_without_elements() -> None:
    assert items_of("") == items_of("  ") == []
    assert items_of("a, b") == ["a", "b"]
