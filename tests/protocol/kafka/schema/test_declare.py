from typing import Any

import pytest

from rockgate.protocol.kafka.schema import (
    Array,
    Int32,
    Nullable,
    NullableString,
    String,
    Uuid,
    declaration_of,
    decode,
    encode,
    field,
    message,
    struct,
)


@struct
class Leader:
    """Who leads."""

    node: int = field(Int32, default=-1)
    epoch: int = field(Int32, default=-1)


@message(versions="0-3", flexible="2+")
class Answer:
    """A message with a field of every sort."""

    name: str = field(String)
    note: str | None = field(Nullable(String, "1+"))
    topic_id: bytes = field(Uuid, "1+")
    counts: list[int] = field(Array(Int32))
    others: list[Leader] | None = field(Nullable(Array(Leader)), default=None)
    last: Leader | None = field(Nullable(Leader), "3+", default=None)
    reason: str | None = field(NullableString, "2+", tag=0, default=None)
    leader: Leader = field(Leader, "3+", tag=1)
    rack: str = field(String, flexible=False)


def test_every_field_may_be_left_out() -> None:
    assert Answer() == Answer(
        name="",
        note="",
        topic_id=bytes(16),
        counts=[],
        others=None,
        last=None,
        reason=None,
        leader=Leader(node=-1, epoch=-1),
        rack="",
    )


def test_defaults_that_can_be_changed_are_not_shared() -> None:
    first, second = Answer(), Answer()
    first.counts.append(1)
    first.leader.node = 7
    assert second == Answer()


def test_values_have_slots_and_take_keywords_only() -> None:
    with pytest.raises(AttributeError):
        Answer().nmae = "x"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Answer("x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nmae"):
        Answer(nmae="x")  # type: ignore[call-arg]
    assert [each.name for each in declaration_of(Answer).fields][:2] == ["name", "note"]


def test_the_first_value_is_built_like_the_second() -> None:
    @struct
    class Fresh:
        """A struct that has not been built yet."""

        node: int = field(Int32, default=-1)
        counts: list[int] = field(Array(Int32))

    first, second = Fresh(node=3), Fresh(node=3)
    assert first == second
    assert (first.node, first.counts) == (3, [])
    assert first.counts is not second.counts
    assert Fresh.__init__.__qualname__.endswith("Fresh.__init__")


def test_a_struct_without_fields_is_a_value_too() -> None:
    @struct
    class Nothing:
        """Nothing at all."""

    assert Nothing() == Nothing()


def test_values_show_what_differs_from_their_defaults() -> None:
    assert (
        repr(Answer(name="a", leader=Leader(node=2))) == "Answer(name='a', leader=Leader(node=2))"
    )
    assert repr(Leader()) == "Leader()"


def test_values_are_equal_by_class_and_fields_and_have_no_hash() -> None:
    assert Answer(counts=[1]) == Answer(counts=[1])
    assert Answer(counts=[1]) != Answer(counts=[2])
    other: object = Answer()
    assert Leader() != other
    with pytest.raises(TypeError):
        hash(Answer())


def test_a_nullable_struct_is_led_by_a_marker() -> None:
    assert encode(Answer(), 3).endswith(b"\xff" + b"\0\0" + b"\0")
    present = Answer(last=Leader(node=1, epoch=2))
    assert decode(Answer, 3, encode(present, 3)) == present


def test_tagged_fields_are_written_when_they_differ_by_ascending_tag() -> None:
    plain = encode(Answer(), 3)
    tagged = encode(Answer(reason="r", leader=Leader(node=1)), 3)
    assert plain[:-1] == tagged[: len(plain) - 1]
    leader = b"\0\0\0\x01\xff\xff\xff\xff\0"
    assert tagged[len(plain) - 1 :] == b"\x02" + b"\0\x02\x02r" + b"\x01\x09" + leader


def test_a_field_can_keep_the_older_encoding_in_flexible_versions() -> None:
    assert encode(Answer(rack="r"), 2).endswith(b"\0\x01r" + b"\0")


def test_null_is_refused_in_the_versions_that_do_not_have_it() -> None:
    assert decode(Answer, 1, encode(Answer(note=None), 1)).note is None
    with pytest.raises(ValueError, match="Answer v0 at note"):
        encode(Answer(note=None), 0)


def test_what_is_declared_can_be_read_back() -> None:
    declaration = declaration_of(Answer)
    assert declaration.name == "Answer"
    assert (str(declaration.versions), str(declaration.flexible)) == ("0-3", "2+")
    assert [spec.tag for spec in declaration.fields if spec.tag is not None] == [0, 1]
    with pytest.raises(TypeError, match="int is not a declared struct or message"):
        declaration_of(int)


def test_a_field_without_its_kind_is_a_mistake() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.count is not given by field"):

        @struct
        class Wrong:
            count: int = 0


def test_tags_count_up_from_zero() -> None:
    with pytest.raises(TypeError, match=r"Gap has tags \[0, 2\]"):

        @struct
        class Gap:
            a: int = field(Int32, tag=0)
            b: int = field(Int32, tag=2)


def test_a_tagged_field_needs_a_flexible_version() -> None:
    @message(versions="0-1", flexible="1+")
    class Early:
        a: int = field(Int32, tag=0)

    assert encode(Early(), 1) == b"\0"
    with pytest.raises(TypeError, match="Early has tagged fields in version 0, not flexible"):
        encode(Early(), 0)


def test_a_type_checker_sees_the_fields() -> None:
    value: Any = Answer(name="a").name.upper() + str(Answer(counts=[1]).counts[0] + 1)
    assert value == "A2"
