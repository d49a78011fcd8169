import pytest

from rockgate.protocol.kafka.schema.source import Source


def test_a_failure_is_traced_to_the_path_of_its_line() -> None:
    source = Source()
    with source.block("def walk(items):"), source.block("for i1 in range(len(items)):"):
        source.add("items[i1].x", "items[{i1}].x")
    walk, lines = source.compile("walk", "test")
    with pytest.raises(AttributeError) as caught:
        walk([Source(), 5])
    paths, found = lines.locate(caught.value)
    assert (paths, found["i1"]) == (["items[0].x"], 0)


def test_a_failure_deeper_than_the_function_is_traced_too() -> None:
    source = Source()
    with source.block("def call(f):"):
        source.add("f()", "inner")
    call, lines = source.compile("call", "test")
    with pytest.raises(ZeroDivisionError) as caught:
        call(lambda: 1 // 0)
    assert lines.locate(caught.value)[0] == ["inner"]


def test_a_failure_elsewhere_has_no_path() -> None:
    source = Source()
    with source.block("def fine():"):
        source.add("return 1")
    fine, lines = source.compile("fine", "test")
    assert fine() == 1
    assert lines.locate(ValueError("made, not raised")) == ([], {})


def test_the_same_constant_has_one_name() -> None:
    source = Source()
    assert source.constant("T", int) == source.constant("T", int)
    assert source.constant("T", int) != source.constant("T", str)
