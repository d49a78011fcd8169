"""The TLS contexts of now: made from files at start, and again when these change.

New connections get the newest context, and open ones keep theirs. A file that cannot be used leaves
the last good one in place, and is logged and counted.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.tls.config import TlsConfig
from rockgate.gateway.security.tls.principals import PrincipalRules

_VERIFY = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
log = logging.getLogger(__name__)


class TlsError(StartError):
    """A file of TLS that cannot be used; a sentence that says which one and what to do."""


class TlsContexts:
    """The contexts: one that asks for certificates as the settings say, and one that does not."""

    def __init__(self, config: TlsConfig) -> None:
        self._config = config
        self._seen = _stamps(config)
        self.with_certificates, self.without_certificates = _made(config)
        self.rules = PrincipalRules.parse(config.principal_rules)
        self.reloaded_count = 0
        self.failed_count = 0
        """Renewals that failed."""

    def renew(self, now_ms: int = 0) -> None:
        """Read the files again if one has changed; called every few seconds."""
        seen = _stamps(self._config)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            made = _made(self._config)
        except TlsError as error:
            self.failed_count += 1
            log.error("certificates not renewed, the old ones stay in use: %s", error)
            return
        self.with_certificates, self.without_certificates = made
        self.reloaded_count += 1
        log.info("certificates renewed file=%s", self._config.certificate_file)


def _files(config: TlsConfig) -> list[Path]:
    files = (
        config.certificate_file,
        config.key_file,
        config.key_password_file,
        config.client_ca_file,
    )
    return [file for file in files if file is not None]


def _stamps(config: TlsConfig) -> list[tuple[int, int, int] | None]:
    """What tells a changed file from the same one; links, as Kubernetes has them, are followed."""
    stamps: list[tuple[int, int, int] | None] = []
    for file in _files(config):
        try:
            stat = file.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return stamps


def _made(config: TlsConfig) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return _context(config, _VERIFY[config.client_auth]), _context(config, ssl.CERT_NONE)


def _context(config: TlsConfig, verify: ssl.VerifyMode) -> ssl.SSLContext:
    if config.certificate_file is None:
        raise TlsError(
            "A listener has TLS, but there is no certificate. Set tls.certificate_file and"
            " tls.key_file."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[config.version_min]
    # Renegotiation costs a server more than its client, and no client of ours needs it.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session would skip the check of a certificate that has expired since. The first is
    # for version 1.2, the second for 1.3.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    password = _password(config)
    key = config.key_file or config.certificate_file
    for file in (config.certificate_file, key):
        _check_readable(file)
    try:
        # Without a function OpenSSL would ask on the terminal.
        context.load_cert_chain(config.certificate_file, key, password=lambda: password)
    except (OSError, ValueError) as error:
        raise TlsError(
            f"Certificate {config.certificate_file} and key {key} cannot be used:"
            f" {_reason(error)}. Both must be PEM, belong together, and"
            " tls.key_password_file must have the password of an encrypted key."
        ) from None
    if verify is not ssl.CERT_NONE and config.client_ca_file is not None:
        _check_readable(config.client_ca_file)
        try:
            context.load_verify_locations(config.client_ca_file)
        except (OSError, ValueError) as error:
            raise TlsError(
                f"Authorities {config.client_ca_file} cannot be used: {_reason(error)}."
                " The file must have PEM certificates."
            ) from None
    context.verify_mode = verify
    return context


def _reason(error: Exception) -> str:
    """OpenSSL's reason, or the system's."""
    return str(getattr(error, "reason", None) or error)


def _check_readable(file: Path) -> None:
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        raise TlsError(f"Cannot read {file}: {error.strerror}. Check its path and owner.") from None


def _password(config: TlsConfig) -> str:
    if config.key_password_file is None:
        return ""
    try:
        lines = config.key_password_file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TlsError(f"Cannot read {config.key_password_file}: {error}.") from None
    return lines[0] if lines else ""
