"""A repeated failure is logged once, and again when it changes."""

from __future__ import annotations

import logging

import pytest

from rockgate.store.errors import DiskFailed, StoreClosed, StoreFull
from rockgate.store.problem_log import DeferralLog, Remembered


@pytest.fixture
def complaint(caplog: pytest.LogCaptureFixture) -> DeferralLog:
    caplog.set_level(logging.INFO)
    return DeferralLog(logging.getLogger("test"), "deliveries")


def test_a_reason_is_reported_once_whatever_it_names(
    complaint: DeferralLog, caplog: pytest.LogCaptureFixture
) -> None:
    for place in range(9):
        complaint.report(StoreFull(f"no room at {place}"))
    assert caplog.messages == ["deliveries deferred reason=no room at 0"]


def test_another_reason_and_the_end_are_reported_and_then_the_first_again(
    complaint: DeferralLog, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (StoreFull("full"), StoreClosed("closed"), StoreClosed("closed")):
        complaint.report(error)
    complaint.end()
    complaint.end()
    complaint.report(StoreClosed("again"))
    assert caplog.messages == [
        "deliveries deferred reason=full",
        "deliveries deferred reason=closed",
        "deliveries resumed",
        "deliveries deferred reason=again",
    ]


def test_a_failed_disk_is_told_where_it_failed_and_not_here(
    complaint: DeferralLog, caplog: pytest.LogCaptureFixture
) -> None:
    complaint.report(DiskFailed("log", OSError("gone")))
    assert caplog.messages == []


def test_things_are_remembered_up_to_a_bound_and_the_oldest_forgotten() -> None:
    remembered = Remembered(2)
    assert [remembered.is_new(each) for each in "aab"] == [True, False, True]
    assert [remembered.is_new(each) for each in "cba"] == [True, False, True]
