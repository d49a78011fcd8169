from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.kafka.authentication.people import ALICE, People

from rockgate.gateway.kafka.authentication.login import Login, State
from rockgate.gateway.net.stream import Disconnect
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

ALLOWED = {
    State.BEGUN: {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
    State.EXCHANGING: {ApiKey.SASL_AUTHENTICATE},
    State.OPEN: set(ApiKey),
    State.CLOSED: set(),
}


def admitted(login: Login, now: float) -> set[ApiKey]:
    passed = set()
    for key in ApiKey:
        try:
            login.admit(key, now)
        except Disconnect:
            continue
        passed.add(key)
    return passed


@settings(max_examples=budget("property_examples"), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("choose"), st.sampled_from(["PLAIN", "SCRAM-SHA-256", "NONE"])),
            st.tuples(st.sampled_from(["succeed", "expiring", "fail", "wait"]), st.just("")),
        )
    )
)
def test_only_what_the_state_allows_is_admitted(events: list[tuple[str, str]]) -> None:
    changes: list[State] = []
    login = Login(People().mechanisms(), lambda: changes.append(login.state))
    now, expires_at = 100.0, float("inf")
    for event, mechanism in events:
        state = login.state
        if event == "wait":
            now += 10.0
        elif event == "choose":
            code = login.choose(mechanism, 1, now)
            assert (login.state is State.EXCHANGING) == (
                code == ErrorCode.NONE or state is State.EXCHANGING
            )
        elif event == "fail":
            login.fail()
        elif state is State.EXCHANGING:
            expires_at = now + 5.0 if event == "expiring" else float("inf")
            login.succeed(ALICE, expires_at)
        allowed = ALLOWED[login.state]
        if login.state is State.OPEN and now >= expires_at:
            allowed = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
        assert admitted(login, now) == allowed
    assert not changes or changes[-1] is login.state


def test_a_login_of_a_lost_connection_tells_nobody() -> None:
    login = Login(People().mechanisms(), lambda: changes.append(1))
    changes: list[int] = []
    login.release()
    login.fail()
    assert changes == []
    assert admitted(login, 0.0) == set()
