"""What a check found: fine, worth knowing, or in the way, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report."""

    check: str
    status: Status
    found: str
    """What there is, in a sentence."""
    remedy: str = ""
    """What to do about it, in a sentence; empty where there is nothing to do."""


def ok(check: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(check=check, status=Status.OK, found=found)


def warning(check: str, found: str, remedy: str) -> Finding:
    """The server starts, but not as well as it could."""
    return Finding(check=check, status=Status.WARNING, found=found, remedy=remedy)


def problem(check: str, found: str, remedy: str) -> Finding:
    """The server does not start, or must not be trusted with data."""
    return Finding(check=check, status=Status.PROBLEM, found=found, remedy=remedy)
