"""Asks a person on the terminal, whatever standard input and output are."""

from __future__ import annotations

import getpass


def ask_secret(prompt: str) -> str | None:
    """What is typed, without an echo; None without a terminal, or if nothing is typed."""
    try:
        with open("/dev/tty", "rb", buffering=0):
            pass
    except OSError:
        return None
    try:
        return getpass.getpass(prompt) or None
    except EOFError:
        return None


def choose_secret(what: str) -> str | None:
    """A new secret, typed twice; None without a terminal, ValueError if the two differ."""
    first = ask_secret(f"{what}: ")
    if first is None:
        return None
    if ask_secret(f"{what}, again: ") != first:
        raise ValueError("the two passwords differ")
    return first
