from kio.schema.errors import ErrorCode as ItsErrorCode

from rockgate.protocol.kafka.error_codes import ErrorCode


def test_codes_names_and_retriability_are_kafkas() -> None:
    ours = {int(code): (code.name, code.retriable) for code in ErrorCode}
    assert ours == {int(code): (code.name.upper(), code.retriable) for code in ItsErrorCode}


def test_codes_run_from_minus_one_to_133_without_a_gap() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


def test_every_code_has_a_meaning_of_one_clause() -> None:
    for code in ErrorCode:
        assert code.meaning and "\n" not in code.meaning and not code.meaning.endswith(".")
    assert len({code.meaning for code in ErrorCode}) == len(ErrorCode)


def test_a_code_is_the_number_that_goes_into_a_response() -> None:
    assert int(ErrorCode.NONE) == 0
    assert ErrorCode.OFFSET_OUT_OF_RANGE + 0 == 1
