"""What is not served says why."""

from typing import Any

import pytest
from tests.gateway.remoting.client import Client

from rockgate.gateway.compose.remoting import table as remoting_table
from rockgate.gateway.compose.remoting.access import access_table
from rockgate.gateway.remoting.nameserver import processors as nameserver
from rockgate.gateway.remoting.server.unsupported import REASONS, remark
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode


class Anything:
    """Has every attribute, and can be called."""

    def __getattr__(self, name: str) -> Any:
        return Anything()

    def __call__(self, *arguments: Any) -> Any:
        return Anything()


def test_every_code_of_rocketmq_is_served_or_has_a_reason() -> None:
    anything: Any = Anything()
    served = {
        *remoting_table.table(anything),
        *access_table(anything, anything),
        *nameserver.table(anything),
    }
    assert {code.name for code in RequestCode} <= {
        code.name for code in RequestCode if code in REASONS or code in served
    }


@pytest.mark.parametrize("code", sorted(REASONS))
def test_the_text_is_that_of_rocketmq_and_then_the_reason(code: int) -> None:
    text, _, reason = remark(code).partition(": ")
    assert text == f" request type {code} not supported"
    assert len(reason.split()) >= 4


def test_an_unknown_code_has_the_text_of_rocketmq_alone() -> None:
    assert remark(99) == " request type 99 not supported"


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (513, "static"),
        (200074, "lite"),
        (354, "RocksDB"),
        (1005, "controller"),
        (302, "class filters"),
    ],
)
def test_a_client_reads_the_reason(broker: Client, code: int, word: str) -> None:
    answer = broker.ask(code)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert word in (answer.remark or "")
