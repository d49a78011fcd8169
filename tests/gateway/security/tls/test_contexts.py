import logging
from pathlib import Path

import pytest
from tests.gateway.security.tls.certificates import Authority

from rockgate.gateway.security.tls.config import TlsConfig
from rockgate.gateway.security.tls.contexts import TlsContexts, TlsError


def config(authority: Authority, certificate: tuple[Path, Path]) -> TlsConfig:
    file, key = certificate
    return TlsConfig(
        certificate_file=file, key_file=key, client_ca_file=authority.file, client_auth="required"
    )


def test_files_that_cannot_be_used_are_named_with_what_to_do(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    file, key = authority.issue("server")
    _, other = authority.issue("other")
    with pytest.raises(TlsError, match=r"Set tls\.certificate_file"):
        TlsContexts(TlsConfig())
    with pytest.raises(TlsError, match=r"Cannot read .*missing\.crt: No such file"):
        TlsContexts(TlsConfig(certificate_file=tmp_path / "missing.crt", key_file=key))
    with pytest.raises(TlsError, match=r"server\.crt and key .*other\.key cannot be used"):
        TlsContexts(TlsConfig(certificate_file=file, key_file=other))
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    with pytest.raises(TlsError, match=r"Authorities .*empty\.pem cannot be used"):
        TlsContexts(
            TlsConfig(
                certificate_file=file, key_file=key, client_ca_file=empty, client_auth="required"
            )
        )


def test_certificates_of_clients_need_an_authority() -> None:
    with pytest.raises(ValueError, match="client_auth needs client_ca_file"):
        TlsConfig(client_auth="required")


def test_changed_files_are_read_and_broken_ones_keep_the_old_context(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("server")
    contexts = TlsContexts(config(authority, certificate))
    first = contexts.with_certificates
    contexts.renew()
    assert contexts.with_certificates is first and contexts.reloaded_count == 0
    with caplog.at_level(logging.INFO):
        certificate[1].write_text("broken")
        contexts.renew()
    assert contexts.with_certificates is first and contexts.failed_count == 1
    assert "certificates not renewed, the old ones stay in use" in caplog.text
    authority.issue("server")
    contexts.renew()
    assert contexts.with_certificates is not first and contexts.reloaded_count == 1
