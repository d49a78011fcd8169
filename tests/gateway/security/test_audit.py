from __future__ import annotations

import logging

import pytest

from rockgate.gateway.security.audit import Audit
from rockgate.gateway.security.principal import Principal

ALICE = Principal.user("alice")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_line_says_who_from_where_what_and_the_outcome(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    audit = Audit()
    audit.authenticated(ALICE, "10.0.0.1", mechanism="PLAIN", listener="kafka")
    audit.rejected(ALICE, "10.0.0.1", mechanism="PLAIN", listener="kafka", reason="no proof")
    audit.refused(ALICE, "10.0.0.1", api="PRODUCE", operation="WRITE", resource="TOPIC:orders")
    audit.changed(ALICE, "10.0.0.1", api="CREATE_ACLS", what="TOPIC:a b")
    assert lines(caplog) == [
        "authenticated principal=User:alice host=10.0.0.1 mechanism=PLAIN listener=kafka",
        "rejected principal=User:alice host=10.0.0.1 mechanism=PLAIN listener=kafka"
        " reason='no proof'",
        "refused principal=User:alice host=10.0.0.1 api=PRODUCE operation=WRITE"
        " resource=TOPIC:orders",
        "changed principal=User:alice host=10.0.0.1 api=CREATE_ACLS what='TOPIC:a b' outcome=ok",
    ]
    assert {record.name for record in caplog.records} == {"rockgate.gateway.security.audit"}


def test_a_name_cannot_begin_another_line_or_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Audit().authenticated(
        Principal.user("a\nok principal=User:root"), "h", mechanism="PLAIN", listener="kafka"
    )
    [line] = lines(caplog)
    assert line.startswith(r"authenticated principal='User:a\nok principal=User:root' host=h")


def test_lines_beyond_the_limit_are_counted_by_kind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = 5.0
    audit = Audit(2, lambda: now)
    for _ in range(7):
        audit.refused(ALICE, "h", api="FETCH", operation="READ", resource="TOPIC:t")
    audit.changed(ALICE, "h", api="CREATE_ACLS", what="x")
    assert [line.split()[0] for line in lines(caplog)] == ["refused", "refused", "changed"]
    now = 6.0
    audit.refused(ALICE, "h", api="FETCH", operation="READ", resource="TOPIC:t")
    assert lines(caplog)[-1].endswith(" dropped=5")
    assert audit.dropped["refused"] == 5
    audit.refused(ALICE, "h", api="FETCH", operation="READ", resource="TOPIC:t")
    assert "dropped" not in lines(caplog)[-1]
