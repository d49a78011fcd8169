from __future__ import annotations

from pathlib import Path

import pytest

from rockgate.gateway.security.credentials.secret_key import create_key, read_key
from rockgate.gateway.security.errors import SecretUnavailable


def test_a_new_key_is_read_back_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    assert read_key(path) is None
    made = create_key(path)
    again = read_key(path)
    assert again is not None
    assert again.derived("x") == made.derived("x") != made.derived("y")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().strip() not in repr(made)


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    create_key(path)
    before = path.read_bytes()
    with pytest.raises(SecretUnavailable, match="File exists"):
        create_key(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"abcd", b"\xff" * 64, b"0" * 66])
def test_a_file_that_is_no_key_is_not_used_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    with pytest.raises(SecretUnavailable, match="64 hexadecimal digits"):
        read_key(path)
