from rockgate.protocol.remoting.codes import (
    Language,
    RequestCode,
    ResponseCode,
    request_name,
    response_name,
)


def test_a_code_has_its_name_for_people_and_an_unknown_one_its_number() -> None:
    assert request_name(310) == "SEND_MESSAGE_V2"
    assert request_name(99999) == "99999"
    assert response_name(19) == "PULL_NOT_FOUND"
    assert response_name(-7) == "-7"


def test_no_two_codes_share_a_number() -> None:
    for codes in (RequestCode, ResponseCode, Language):
        assert len(codes.__members__) == len(list(codes))


def test_languages_have_rocketmq_s_bytes() -> None:
    assert (Language.JAVA, Language.PYTHON, Language.OTHER, Language.GO) == (0, 3, 7, 9)
