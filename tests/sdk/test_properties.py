import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.sdk.properties import read_properties, written_property


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b c \n", {"a": "b c "}),
        ("a: b\nc d\ne", {"a": "b", "c": "d", "e": ""}),
        ("# a=b\n! c=d\n\n", {}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=one \\\n   two\\\n three", {"a": "one twothree"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        (r"a\=b=\u00e9\t\"\:", {"a=b": 'é\t":'}),
        ("a=b\\", {"a": "b"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert read_properties(text) == found


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])))
def test_what_was_written_is_read(value: str) -> None:
    assert read_properties(written_property("a.b", value)) == {"a.b": value}


@given(st.text(max_size=200))
def test_every_text_is_read(text: str) -> None:
    read_properties(text)
