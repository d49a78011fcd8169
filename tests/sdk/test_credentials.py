import ssl

import pytest

from rockgate.protocol.remoting.command import Command, Fields
from rockgate.protocol.remoting.signature import SIGNATURE, verify
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.credentials import Credentials, Signing, context_of

ALICE = Credentials("alice", "s3cret")


def signed(fields: Fields, body: bytes = b"body") -> Command:
    Signing(ALICE).before_request("127.0.0.1:1", 10, fields, body)
    return Command(10, fields=fields, body=body)


def test_a_signed_request_verifies_and_a_changed_one_does_not() -> None:
    request = signed({"topic": "orders", "queueId": "0"})
    assert verify(request, "s3cret")
    assert not verify(request, "other")
    request.fields["topic"] = "others"
    assert not verify(request, "s3cret")


def test_a_request_that_is_sent_again_is_signed_anew() -> None:
    fields: Fields = {"queueId": "0"}
    first = signed(fields).fields[SIGNATURE]
    fields["queueId"] = "1"
    again = signed(fields)
    assert verify(again, "s3cret")
    assert again.fields[SIGNATURE] != first


def test_secrets_appear_in_no_text() -> None:
    assert repr(Credentials("alice", "s3cret", "t0ken")) == "Credentials(access_key='alice')"


def test_credentials_are_complete() -> None:
    with pytest.raises(ValueError, match="a secret key"):
        Credentials("alice", "")


def test_the_signature_is_added_after_every_other_hook() -> None:
    class Other(Signing):
        """Any other hook."""

    hooks = Client("127.0.0.1:9876", credentials=ALICE, rpc_hooks=[Other(ALICE)]).rpc_hooks
    assert [type(each) for each in hooks] == [Other, Signing]


def test_true_trusts_what_the_system_trusts() -> None:
    context = context_of(True)
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context_of(False) is None
    assert context_of(context) is context


async def test_users_with_other_credentials_have_another_client() -> None:
    leases = [
        Lease("127.0.0.1:9876", credentials=each) for each in (ALICE, ALICE, Credentials("b", "x"))
    ]
    clients = [await each.open() for each in leases]
    assert clients[0] is clients[1]
    assert clients[0] is not clients[2]
    for each in leases:
        await each.close()


def test_credentials_belong_to_the_client_that_is_shared() -> None:
    client = Client("127.0.0.1:9876")
    with pytest.raises(ValueError, match="on the client"):
        Lease("", client=client, credentials=ALICE)
