"""Signed requests that someone has changed on their way: none of them reaches a processor.

What a signature covers is what RocketMQ's clients sign: the values of the fields, in the order of
their names, and the body. A change that leaves these bytes as they are (one field's end moved to
the beginning of the next, another name of the same place) cannot be noticed, which is one reason to
use TLS.
"""

from __future__ import annotations

import base64
import random as randoms
import time
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.budget import budget
from tests.seeds import seeded

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.authorization.authentication import Signed
from rockgate.gateway.remoting.authorization.broker_needs import PRODUCING
from rockgate.gateway.remoting.authorization.guard import RequestGuard
from rockgate.gateway.remoting.server.caller import Caller, Peer
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.handle import Reply
from rockgate.gateway.security.credentials.failed_attempts import FailedAttempts
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import BINARY, JSON, Command
from rockgate.protocol.remoting.connection import Connection

pytestmark = pytest.mark.row("SEC-5")

SECRETS = {"alice": b"secret of alice", "bob": b"secret of bob"}
SEND = RequestCode.SEND_MESSAGE_V2
FIELDS = {"a": "senders", "b": "orders", "c": "TBW102", "d": "4", "e": "0", "i": "KEYS\x01one"}


class People:
    def secret(self, name: str) -> bytes | None:
        return SECRETS.get(name)


class Target:
    """A guard, and a processor that remembers what has reached it."""

    def __init__(self, failures: FailedAttempts | None = None) -> None:
        self.reached: list[Command] = []
        guard = RequestGuard(
            authentication=Signed(People()), access=None, failures=failures, now=lambda: 0.0
        )
        self.handle = guard.around({SEND: self._serve}, PRODUCING)[SEND]
        where = Address("10.0.0.7", 1)
        self.peer = Peer(connection_id=1, local=where, remote=where)
        self.caller: Any = SimpleNamespace(peer=self.peer, enter=lambda principal: True)

    def _serve(self, command: Command, caller: Caller) -> Reply:
        self.reached.append(command)
        return Command(ResponseCode.SUCCESS)

    def is_refused(self, command: Command) -> bool:
        """Whether a request is, rather than to reach the processor."""
        before = len(self.reached)
        try:
            self.handle(command, self.caller)
        except Refused as refused:
            assert refused.code == ResponseCode.NO_PERMISSION
            assert len(self.reached) == before
            return True
        assert len(self.reached) == before + 1
        return False


def signed(body: bytes = b"espresso", user: str = "alice", **fields: str) -> Command:
    given = FIELDS | fields
    return Command(SEND, signature.sign(given, body, access_key=user, secret=SECRETS[user]), body)


def sent(command: Command, encoding: int) -> Command:
    """The same request as it arrives."""
    client = Connection(encoding=encoding)
    client.request(command.code, command.fields, bytes(command.body))
    (arrived,) = Connection().receive_data(b"".join(client.data_to_send()))
    return arrived


@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_a_signed_request_is_served_and_the_same_one_with_another_body_is_not(
    encoding: int,
) -> None:
    target = Target()
    assert not target.is_refused(sent(signed(), encoding))
    assert target.peer.principal == Principal.user("alice")
    replayed = signed()
    replayed.body = b"a double espresso"
    assert target.is_refused(sent(replayed, encoding))
    assert target.is_refused(sent(Command(SEND, signed().fields, b""), encoding))


def test_a_signature_of_one_request_is_none_of_another() -> None:
    target = Target()
    borrowed = signed()
    borrowed.fields["Signature"] = signed(b="others").fields["Signature"]
    assert target.is_refused(borrowed)
    other = signed()
    other.fields["AccessKey"] = "bob"
    assert target.is_refused(other), "nor of another user"
    assert target.peer.principal == ANONYMOUS


@pytest.mark.parametrize("name", ["", "A", "Signature2", "accessKey", "z", "topic"])
def test_a_field_that_was_added_or_taken_away_is_noticed(name: str) -> None:
    target = Target()
    added = signed()
    added.fields[name] = "x"
    assert target.is_refused(added)
    for each in FIELDS:
        less = signed()
        del less.fields[each]
        assert target.is_refused(less), each


def test_the_order_of_fields_on_the_wire_means_nothing_and_that_of_values_does() -> None:
    target = Target()
    one = signed()
    assert not target.is_refused(Command(SEND, dict(reversed(one.fields.items())), one.body))
    swapped = signed()
    swapped.fields["a"], swapped.fields["b"] = swapped.fields["b"], swapped.fields["a"]
    assert target.is_refused(swapped)


@pytest.mark.parametrize("given", ["", "=", "A" * 28, "\u00e9" * 28, "\ud800", "x" * 100_000])
def test_what_is_no_signature_is_none(given: str) -> None:
    target = Target()
    for user in ("alice", "nobody", "", "x" * 10_000, "alice\0", "Alice"):
        asked = signed()
        asked.fields |= {"Signature": given, "AccessKey": user}
        assert target.is_refused(asked)
    asked = signed()
    del asked.fields["Signature"]
    assert target.is_refused(asked)


def test_the_secret_of_a_user_who_does_not_exist_cannot_be_guessed() -> None:
    target = Target()
    for secret in (b"", b"\0" * 16, b"None"):
        fields = signature.sign(FIELDS, b"", access_key="nobody", secret=secret)
        assert target.is_refused(Command(SEND, fields))


def _changed(command: Command, random: randoms.Random) -> None:
    """Change a request somewhere."""
    fields, names = command.fields, sorted(command.fields)
    name = random.choice(names)
    match random.randrange(8):
        case 0:
            command.body = random.randbytes(random.randrange(20))
        case 1:
            command.body = bytes(command.body)[: random.randrange(len(command.body))]
        case 2:
            del fields[name]
        case 3:
            fields[chr(random.randrange(0x21, 0x7F))] = str(random.randrange(10))
        case 4:
            at = random.randrange(len(fields[name]) + 1)
            fields[name] = fields[name][:at] + random.choice("ab\0é=") + fields[name][at:]
        case 5:
            fields[name] = fields[name][: random.randrange(len(fields[name]))]
        case 6:
            other = random.choice(names)
            fields[name], fields[other] = fields[other], fields[name]
        case _:
            digest = bytearray(base64.b64decode(fields["Signature"]))
            digest[random.randrange(len(digest))] ^= 1 << random.randrange(8)
            fields["Signature"] = base64.b64encode(digest).decode()


def test_changed_requests_never_reach_a_processor_unless_what_is_signed_stayed_the_same() -> None:
    random, target = seeded(), Target()
    original = signed()
    content = signature.signed_content(original.fields, original.body)
    refused = 0
    for _ in range(budget("signature_rounds")):
        changed = signed()
        for _ in range(random.randint(1, 3)):
            if len(changed.fields) > 1 and "Signature" in changed.fields and changed.body:
                try:
                    _changed(changed, random)
                except (ValueError, IndexError):
                    break  # a field that is empty, or no longer Base64
        fields = changed.fields
        is_same = (
            signature.signed_content(fields, changed.body) == content
            and fields.get("Signature") == original.fields["Signature"]
            and fields.get("AccessKey") == "alice"
        )
        if is_same:
            continue
        assert target.is_refused(changed), (fields, changed.body)
        refused += 1
    assert refused > budget("signature_rounds") // 2


async def test_a_wrong_signature_takes_as_long_as_one_of_nobody() -> None:
    failures = FailedAttempts(20)
    target = Target(failures)
    wrong, nobody = signed(), signed()
    wrong.fields["Signature"] = "A" * 28
    nobody.fields["AccessKey"] = "nobody"
    for command in (wrong, nobody):
        began = time.monotonic()
        with pytest.raises(Refused, match="check signature failed"):
            await cast(Awaitable[Reply], target.handle(command, target.caller))
        assert time.monotonic() - began >= 0.02
    assert len(failures) == 1, "they count against the address"
