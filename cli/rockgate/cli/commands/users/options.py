"""What the commands about users have in common: names, and where a new password comes from."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.app.terminal import choose_secret

PASSWORD_CHARS_MAX: Final = 1_024


class Mechanism(StrEnum):
    """SCRAM's two."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


Name = Annotated[
    str, typer.Argument(metavar="USER", show_default=False, autocompletion=completion.users)
]
Names = Annotated[
    list[str], typer.Argument(metavar="USER", show_default=False, autocompletion=completion.users)
]
NewName = Annotated[str, typer.Argument(metavar="USER", show_default=False)]
PasswordFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Read the new password from a file's first line, - for standard input.",
        show_default="asks for it",
    ),
]


def new_password(name: str, file: str | None) -> str:
    """The password to set: from a file, or typed twice; exits without one."""
    if file is not None:
        return runner.checked("--password-file", _first_line, file)
    chosen = runner.checked("password", lambda text: choose_secret(text), f"New password of {name}")
    if chosen is None:
        runner.usage("There is no terminal to ask for the password. Give --password-file FILE.")
    return _checked(chosen)


def _first_line(file: str) -> str:
    try:
        if file == "-":
            line = sys.stdin.readline(PASSWORD_CHARS_MAX + 2)
        else:
            with Path(file).open(encoding="utf-8") as opened:
                line = opened.readline(PASSWORD_CHARS_MAX + 2)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {file}: {getattr(error, 'strerror', error)}") from None
    return _checked(line.rstrip("\r\n"))


def _checked(password: str) -> str:
    if not password:
        raise ValueError("the password is empty")
    if len(password) > PASSWORD_CHARS_MAX:
        raise ValueError(f"the password exceeds {PASSWORD_CHARS_MAX:,} characters")
    return password
