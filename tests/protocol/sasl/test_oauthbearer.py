import pytest
from tests.budget import budget
from tests.seeds import seeded

from rockgate.protocol.sasl.errors import MalformedToken
from rockgate.protocol.sasl.oauthbearer import PAIRS_MAX, TOKEN_SIZE_MAX, read_message

TOKEN = b"eyJh.eyJz-_~+/.c2ln=="
MESSAGE = b"n,,\x01auth=Bearer " + TOKEN + b"\x01\x01"


@pytest.mark.parametrize(
    "message",
    [
        MESSAGE,
        b"n,,\x01auth=BEARER   " + TOKEN + b"\x01\x01",
        b"n,,\x01traceId=1 2\t3\x01auth=bearer " + TOKEN + b"\x01last=x=y\x01\x01",
    ],
)
def test_the_token_is_read_beside_extensions(message: bytes) -> None:
    found = read_message(message)
    assert (found.authorization_id, found.token) == ("", TOKEN.decode())
    assert TOKEN.decode() not in repr(found)


def test_an_authorization_id_is_unescaped() -> None:
    message = MESSAGE.replace(b"n,,", b"n,a=al=2Cice=3D,")
    assert read_message(message).authorization_id == "al,ice="


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        MESSAGE[:-1],
        MESSAGE + b"\x01",
        MESSAGE + b"x",
        MESSAGE.replace(b"n,,", b"y,,"),
        MESSAGE.replace(b"n,,", b"p=tls,,"),
        MESSAGE.replace(b"n,,", b"n,a=,"),
        MESSAGE.replace(b"n,,", b"n,a=b=2X,"),
        MESSAGE.replace(b"Bearer", b"Basic"),
        MESSAGE.replace(b"auth", b"aut"),
        MESSAGE.replace(b"auth=", b"auth"),
        MESSAGE.replace(b"auth", b"a-th"),
        MESSAGE.replace(TOKEN, b""),
        MESSAGE.replace(TOKEN, TOKEN + b" " + TOKEN),
        MESSAGE.replace(TOKEN, b"\xc3\xa4"),
        MESSAGE[:-1] + b"auth=Bearer x\x01\x01",
        MESSAGE[:-1] + b"a=b\x01" * (PAIRS_MAX + 1) + b"\x01",
        MESSAGE.replace(TOKEN, b"x" * TOKEN_SIZE_MAX),
    ],
)
def test_a_message_of_another_form_is_refused_without_quoting_it(message: bytes) -> None:
    with pytest.raises(MalformedToken) as refused:
        read_message(message)
    assert "eyJh" not in str(refused.value)


def test_damaged_messages_are_read_or_refused() -> None:
    random = seeded()
    for _ in range(budget("fuzz_rounds")):
        damaged = bytearray(MESSAGE)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        try:
            found = read_message(bytes(damaged[: random.randint(0, len(damaged))]))
        except MalformedToken:
            continue
        assert found.token
