"""The table of docs/internals/security.md, row by row, through a session."""

from dataclasses import replace
from typing import Any

import pytest
from tests.budget import budget
from tests.gateway.fakes import LIMITS, turns
from tests.gateway.kafka.authentication.people import (
    ALICE,
    DELAY_MS,
    NOW_MS,
    PASSWORD,
    SECONDS_MAX,
    SaslLine,
)
from tests.seeds import seeded

from rockgate.gateway.security.oauth.bearer import Bearer
from rockgate.gateway.security.principal import ANONYMOUS
from rockgate.protocol.frames import LENGTH
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rockgate.protocol.kafka.messages.find_coordinator import FindCoordinatorRequest
from rockgate.protocol.kafka.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rockgate.protocol.kafka.messages.sasl_handshake import SaslHandshakeRequest
from rockgate.protocol.kafka.schema import decode
from rockgate.protocol.sasl.scram import ScramMechanism
from rockgate.protocol.sasl.scram_client import ScramClient

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
FIND = FindCoordinatorRequest(key="g")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "X")
TOKEN = f"\0alice\0{PASSWORD}".encode()


@pytest.fixture
async def line() -> SaslLine:
    return SaslLine().open()


# Begun


async def test_versions_may_be_asked_before_authenticating(line: SaslLine) -> None:
    for _ in range(2):
        await line.call(ApiKey.API_VERSIONS, 3, VERSIONS, ApiVersionsResponse)
    assert (await line.plain()).error_code == ErrorCode.NONE


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("key", [ApiKey.FIND_COORDINATOR, ApiKey.SASL_AUTHENTICATE])
async def test_anything_else_closes_and_reaches_no_handler(line: SaslLine, key: ApiKey) -> None:
    request: Any = (
        FIND if key == ApiKey.FIND_COORDINATOR else SaslAuthenticateRequest(auth_bytes=b"")
    )
    line.receive(line.request(key, 0, request))
    assert line.transport.is_lost
    assert line.reached.by == []


async def test_a_mechanism_that_is_not_enabled_is_refused_with_the_list(line: SaslLine) -> None:
    assert await line.handshake("GSSAPI") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert (await line.scram()).error_code == ErrorCode.NONE


async def test_a_client_that_does_not_authenticate_in_time_is_disconnected(line: SaslLine) -> None:
    await line.handshake("PLAIN")
    line.clock.advance(SECONDS_MAX)
    assert line.transport.is_lost


async def test_a_request_beyond_512_kib_is_refused_before_and_accepted_after(
    line: SaslLine,
) -> None:
    big = LENGTH.pack((512 << 10) + 1)
    line.receive(big)
    assert line.transport.is_lost
    other = SaslLine(limits=replace(LIMITS, frame_bytes_max=2 << 20)).open()
    await other.plain()
    other.receive(big)
    assert not other.transport.is_closed


async def test_a_request_of_exactly_512_kib_may_come_before(line: SaslLine) -> None:
    line.receive(LENGTH.pack(512 << 10) + bytes(1000))
    assert not line.transport.is_closed


# Exchanging


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
async def test_scram_opens_the_session(line: SaslLine, mechanism: ScramMechanism) -> None:
    answer = await line.scram(mechanism=mechanism)
    assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 0)
    assert (await line.find()).error_code == ErrorCode.NONE
    assert line.reached.by == [ALICE]
    assert line.heard.lines == [("authenticated", "User:alice", mechanism.sasl_name)]
    line.clock.advance(2 * SECONDS_MAX)
    assert not line.transport.is_closed


async def test_plain_opens_the_session(line: SaslLine) -> None:
    assert (await line.plain()).error_code == ErrorCode.NONE
    await line.find()
    assert line.reached.by == [ALICE]


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("key", [ApiKey.FIND_COORDINATOR, ApiKey.SASL_HANDSHAKE])
async def test_anything_but_a_step_closes_an_exchange(line: SaslLine, key: ApiKey) -> None:
    """A handshake too: the mechanism cannot be changed to a weaker one in the middle."""
    await line.handshake("SCRAM-SHA-512")
    request: Any = (
        FIND if key == ApiKey.FIND_COORDINATOR else SaslHandshakeRequest(mechanism="PLAIN")
    )
    line.receive(line.request(key, 0, request))
    assert line.transport.is_lost
    assert line.reached.by == []


@pytest.mark.row("SEC-1")
async def test_requests_behind_an_unfinished_step_are_not_started(line: SaslLine) -> None:
    step = SaslAuthenticateRequest(auth_bytes=TOKEN)
    await line.handshake("PLAIN")
    both = line.request(ApiKey.SASL_AUTHENTICATE, 2, step)
    line.receive(both + line.request(ApiKey.FIND_COORDINATOR, 0, FIND))
    assert line.reached.by == []
    assert not line.transport.reads, "nothing more is read meanwhile"
    await line.settle()
    assert line.reached.by == [ALICE]
    assert len(line.answers()) == 2
    assert line.transport.reads


async def test_requests_behind_a_step_that_fails_are_never_started(line: SaslLine) -> None:
    step = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
    await line.handshake("PLAIN")
    both = line.request(ApiKey.SASL_AUTHENTICATE, 2, step)
    line.receive(both + line.request(ApiKey.FIND_COORDINATOR, 0, FIND))
    await line.settle()
    assert len(line.answers()) == 1
    assert line.transport.is_lost
    assert line.reached.by == []


# Failing


@pytest.mark.row("SEC-4")
async def test_a_failure_is_answered_after_the_delay_and_closes(line: SaslLine) -> None:
    await line.handshake("PLAIN")
    step = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
    line.receive(line.request(ApiKey.SASL_AUTHENTICATE, 2, step))
    await turns()
    line.clock.advance(DELAY_MS / 1000 - 0.001)
    await turns()
    assert line.answers() == []
    line.clock.advance(0.001)
    await turns()
    assert len(line.answers()) == 1
    assert line.transport.is_lost
    assert line.heard.lines == [("rejected", "User:alice", "PLAIN")]


@pytest.mark.row("SEC-4")
async def test_nothing_tells_a_wrong_user_from_a_wrong_password() -> None:
    seen = []
    for user, password in (("alice", "wrong"), ("nobody", PASSWORD)):
        for kind in ("plain", "scram"):
            line = SaslLine().open()
            began = line.clock.now
            answer = await getattr(line, kind)(user, password)
            seen.append((kind, answer, line.transport.is_lost, line.clock.now - began))
            assert line.people.checks == (1 if kind == "plain" else 0), "as much work for both"
    assert seen[:2] == seen[2:]
    assert seen[0][1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_client_that_leaves_during_the_delay_leaves_nothing(line: SaslLine) -> None:
    await line.handshake("PLAIN")
    step = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
    line.receive(line.request(ApiKey.SASL_AUTHENTICATE, 2, step))
    await turns()
    line.transport.lose()
    await turns()
    assert line.clock.timers == []
    assert line.budget.used == 0


async def test_an_address_with_many_failures_waits_longer_even_with_the_right_password() -> None:
    line = SaslLine().open()
    for _ in range(31):
        line.failures.count("10.0.0.1", line.clock.now)
    await line.handshake("PLAIN")
    line.receive(
        line.request(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=TOKEN))
    )
    for _ in range(9):
        await turns()
        line.clock.advance(DELAY_MS / 1000)
        assert line.answers() == []
    line.clock.advance(DELAY_MS / 1000)
    await turns()
    assert len(line.answers()) == 1


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("mechanism", list(ScramMechanism))
async def test_a_login_that_was_overheard_is_of_no_use_again(
    line: SaslLine, mechanism: ScramMechanism
) -> None:
    client = ScramClient(mechanism, "alice", PASSWORD, nonce=b"fyko")
    await line.handshake(mechanism.sasl_name)
    first = client.first()
    final = client.final((await line.step(first)).auth_bytes)
    assert (await line.step(final)).error_code == ErrorCode.NONE
    other = SaslLine().open()
    await other.handshake(mechanism.sasl_name)
    assert (await other.step(first)).error_code == ErrorCode.NONE
    assert (await other.step(final)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert other.transport.is_lost


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "token"])
async def test_who_may_no_longer_log_in_when_the_wait_of_its_address_is_over_is_refused(
    mechanism: str,
) -> None:
    """Until then its connection has no principal by which it could be found and closed."""
    line = SaslLine().open()
    for _ in range(31):
        line.failures.count("10.0.0.1", line.clock.now)
    people = line.people
    people.tokens["t1"] = (PASSWORD, ALICE, NOW_MS + 9_000)
    people.bearers["t0ken"] = Bearer("alice", NOW_MS + 9_000)
    if mechanism in ("PLAIN", "OAUTHBEARER"):
        await line.handshake(mechanism)
        last = TOKEN if mechanism == "PLAIN" else b"n,,\x01auth=Bearer t0ken\x01\x01"
    else:
        is_token = mechanism == "token"
        name = "t1" if is_token else "alice"
        client = ScramClient(
            ScramMechanism.SHA_512, name, PASSWORD, nonce=b"fyko", is_token=is_token
        )
        await line.handshake("SCRAM-SHA-512")
        last = client.final((await line.step(client.first())).auth_bytes)
    line.receive(
        line.request(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=last))
    )
    await turns()
    del people.passwords["alice"], people.tokens["t1"]
    people.disabled.add("alice")
    for _ in range(2):
        line.clock.advance(1)
        await turns()
    (answer,) = line.answers()
    refused = decode(SaslAuthenticateResponse, 2, memoryview(answer))
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert line.transport.is_lost
    assert [each[0] for each in line.heard.lines] == ["rejected"]


# Version 0: frames without a header


async def test_after_a_handshake_of_v0_the_steps_have_no_header(line: SaslLine) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "alice", PASSWORD, nonce=b"fyko")
    assert await line.handshake("SCRAM-SHA-256", version=0) == ErrorCode.NONE
    challenge = await _raw(line, client.first())
    client.verify(await _raw(line, client.final(challenge)))
    await line.find()
    assert line.reached.by == [ALICE]


async def test_the_answer_to_plain_of_v0_is_an_empty_frame(line: SaslLine) -> None:
    """The step may even come in the same segment as the handshake."""
    both = line.request(ApiKey.SASL_HANDSHAKE, 0, SaslHandshakeRequest(mechanism="PLAIN"))
    line.receive(both + LENGTH.pack(len(TOKEN)) + TOKEN)
    await line.settle()
    assert line.transport.read().endswith(LENGTH.pack(0))
    line.receive(line.request(ApiKey.FIND_COORDINATOR, 0, FIND))
    assert line.reached.by == [ALICE]


async def test_a_failure_of_v0_closes_without_a_word(line: SaslLine) -> None:
    await line.handshake("PLAIN", version=0)
    line.receive(LENGTH.pack(13) + b"\0alice\0wrong!")
    await line.settle()
    assert line.transport.read() == b""
    assert line.transport.is_lost


async def _raw(line: SaslLine, message: bytes) -> bytes:
    line.receive(LENGTH.pack(len(message)) + message)
    await line.settle()
    answer = line.transport.read()
    assert LENGTH.unpack_from(answer)[0] == len(answer) - 4
    return answer[4:]


# Open: authenticating again


async def test_a_session_ends_with_its_lifetime_at_the_next_request() -> None:
    line = SaslLine(session_ms_max=60_000).open()
    assert (await line.plain()).session_lifetime_ms == 60_000
    await line.find()
    line.clock.advance(60)
    assert not line.transport.is_closed
    line.receive(line.request(ApiKey.FIND_COORDINATOR, 0, FIND))
    assert line.transport.is_lost
    assert len(line.reached.by) == 1


async def test_authenticating_again_extends_the_session() -> None:
    line = SaslLine(session_ms_max=60_000).open()
    await line.scram()
    line.clock.advance(70)
    assert (await line.scram()).session_lifetime_ms == 60_000
    line.clock.advance(59)
    await line.find()
    assert line.reached.by == [ALICE]


async def test_authenticating_again_as_another_principal_closes() -> None:
    line = SaslLine(session_ms_max=60_000).open()
    await line.plain()
    line.clock.advance(2)
    answer = await line.plain("bob", "builder")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert line.transport.is_lost
    assert line.session.peer.principal == ALICE


async def test_authenticating_again_too_soon_or_otherwise_is_an_illegal_state(
    line: SaslLine,
) -> None:
    await line.plain()
    assert await line.handshake("PLAIN") == ErrorCode.ILLEGAL_SASL_STATE, "within a second"
    line.clock.advance(2)
    assert await line.handshake("SCRAM-SHA-256") == ErrorCode.ILLEGAL_SASL_STATE
    assert await line.handshake("PLAIN", version=0) == ErrorCode.ILLEGAL_SASL_STATE
    assert (await line.step(TOKEN)).error_code == ErrorCode.ILLEGAL_SASL_STATE
    await line.find()
    assert line.reached.by == [ALICE]


async def test_authenticating_again_has_the_same_time(line: SaslLine) -> None:
    await line.plain()
    line.clock.advance(2)
    await line.handshake("PLAIN")
    line.clock.advance(SECONDS_MAX)
    assert line.transport.is_lost


async def test_a_credential_that_expires_sooner_ends_the_session_sooner() -> None:
    line = SaslLine(session_ms_max=60_000).open()
    line.people.tokens["id"] = ("hmac", ALICE, NOW_MS + 5_000)
    answer = await line.scram("id", "hmac", is_token=True)
    assert answer.session_lifetime_ms == 5_000
    await line.find()
    assert line.reached.by == [ALICE]


@pytest.mark.parametrize("token_id", ["id", "other"])
async def test_an_expired_or_unknown_token_is_refused(token_id: str) -> None:
    line = SaslLine().open()
    line.people.tokens["id"] = ("hmac", ALICE, NOW_MS)
    answer = await line.scram(token_id, "hmac", is_token=True)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_users_password_is_not_one_of_a_token(line: SaslLine) -> None:
    answer = await line.scram(is_token=True)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_user_who_is_removed_during_an_exchange_is_refused(line: SaslLine) -> None:
    client = ScramClient(ScramMechanism.SHA_512, "alice", PASSWORD, nonce=b"fyko")
    await line.handshake("SCRAM-SHA-512")
    final = client.final((await line.step(client.first())).auth_bytes)
    del line.people.passwords["alice"]
    assert (await line.step(final)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert line.transport.is_lost


# Bearer tokens


async def test_a_bearer_token_opens_the_session_until_it_expires(line: SaslLine) -> None:
    line.people.bearers["t0ken"] = Bearer("alice", NOW_MS + 5_000)
    answer = await line.bearer("t0ken")
    assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 5_000)
    await line.find()
    assert line.reached.by == [ALICE]
    line.clock.advance(3)
    line.people.bearers["next"] = Bearer("alice", NOW_MS + 9_000)
    assert (await line.bearer("next")).session_lifetime_ms == 9_000, "authenticated again"
    line.clock.advance(9)
    line.receive(line.request(ApiKey.FIND_COORDINATOR, 0, FIND))
    assert line.transport.is_lost


@pytest.mark.parametrize(
    ("token", "header"),
    [("unknown", b"n,,"), ("expired", b"n,,"), ("good", b"n,a=bob,"), ("disabled", b"n,,")],
)
async def test_a_bearer_token_that_is_not_valid_is_refused_like_a_wrong_password(
    line: SaslLine, token: str, header: bytes
) -> None:
    line.people.disabled.add("bob")
    line.people.bearers |= {
        "expired": Bearer("alice", NOW_MS),
        "good": Bearer("alice", NOW_MS + 1),
        "disabled": Bearer("bob", NOW_MS + 1),
    }
    refused = await line.bearer(token, header)
    other = SaslLine().open()
    assert refused == await other.plain("alice", "guess")
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert line.transport.is_lost
    assert line.reached.by == []
    assert not any(token in reason for reason in line.heard.reasons if token == "unknown")


async def test_a_user_with_too_many_connections_is_disconnected(line: SaslLine) -> None:
    line.registry.has_room = False
    await line.handshake("PLAIN")
    line.receive(
        line.request(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=TOKEN))
    )
    await line.settle()
    assert line.transport.is_lost
    assert line.answers() == []
    assert line.registry.users == ["alice"]


# Hostile


@pytest.mark.row("SEC-1")
async def test_a_proof_of_another_exchange_is_refused(line: SaslLine) -> None:
    client = ScramClient(ScramMechanism.SHA_512, "alice", PASSWORD, nonce=b"fyko")
    await line.handshake("SCRAM-SHA-512")
    proof = client.final((await line.step(client.first())).auth_bytes)
    other = SaslLine().open()
    await other.handshake("SCRAM-SHA-512")
    await other.step(client.first())
    assert (await other.step(proof)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert other.transport.is_lost


async def test_a_mechanism_that_raises_what_nobody_expects_leaves_nobody_in(
    line: SaslLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(name: str, password: str) -> bool:
        raise RuntimeError("disk")

    monkeypatch.setattr(line.people, "check_password", broken)
    assert (await line.plain()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert line.transport.is_lost


@pytest.mark.row("SEC-1")
async def test_fuzzed_handshakes_never_reach_a_handler() -> None:
    random = seeded()
    for _ in range(budget("sasl_fuzz_rounds")):
        line = SaslLine().open()
        client = ScramClient(ScramMechanism.SHA_256, "alice", "wrong", nonce=b"fyko")
        steps = [
            line.request(ApiKey.API_VERSIONS, 3, VERSIONS),
            line.request(
                ApiKey.SASL_HANDSHAKE,
                random.randrange(2),
                SaslHandshakeRequest(
                    mechanism=random.choice(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "X"])
                ),
            ),
            line.request(
                ApiKey.SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(auth_bytes=client.first())
            ),
            line.request(ApiKey.FIND_COORDINATOR, 0, FIND),
            line.request(
                ApiKey.SASL_AUTHENTICATE,
                2,
                SaslAuthenticateRequest(auth_bytes=random.randbytes(random.randrange(40))),
            ),
        ]
        random.shuffle(steps)
        sent = bytearray(b"".join(steps[: random.randrange(1, 6)]))
        for _ in range(random.randrange(3)):
            sent[random.randrange(len(sent))] = random.randrange(256)
        line.receive(bytes(sent[: random.randrange(len(sent)) + 1]))
        await turns()
        line.clock.advance(DELAY_MS / 1000)
        await turns()
        assert line.reached.by == []
        assert line.session.peer.principal == ANONYMOUS
        line.clock.advance(SECONDS_MAX)
        line.transport.read()
        assert line.transport.is_lost
        assert line.budget.used == 0
