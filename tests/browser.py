"""Finding a Chromium for tests of pages: on PATH, in the cache, or unpacked into it from Debian.

Nothing is installed: `apt-get --simulate` says which packages are missing on this machine, they are
downloaded and unpacked into the cache of the tests, and their libraries are named to the browser
alone. That needs Debian (or its like), its package lists or the right to fetch them, and 120 MB.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.cached_directory import cached_directory, user_cache

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium", "fonts-dejavu-core", "fontconfig-config")
SECONDS_MAX = 900
START_SECONDS_MAX = 60
ADVICE = (
    "install Chromium and put it on PATH (on Debian: apt-get install chromium), or run as root on"
    " Debian with its packages reachable"
)
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
_SANS = "".join(
    f"<alias><family>{name}</family><prefer><family>DejaVu Sans</family></prefer></alias>"
    for name in ("sans-serif", "system-ui")
)
_MISSING = re.compile(r"^Inst (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """A program and the variables that it needs."""

    program: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """The environment to start it in."""
        return {**os.environ, **self.variables}


class NoBrowser(Exception):
    """There is none, and none could be unpacked; the text says why."""


def find_browser(environ: Mapping[str, str]) -> Browser:
    """A browser that starts; NoBrowser if there is none."""
    for name in NAMES:
        program = shutil.which(name, path=environ.get("PATH", ""))
        if program is not None and _starts(Browser(program=Path(program))):
            return Browser(program=Path(program))
    try:
        root = cached_directory(user_cache(environ) / "chromium", unpack)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or ""
        raise NoBrowser(f"Chromium could not be unpacked: {error} {said.strip()[-300:]}") from error
    found = unpacked(root)
    if not _starts(found):
        raise NoBrowser(f"the Chromium in {root} does not start; remove that folder to try again")
    return found


def unpack(target: Path) -> None:
    """Download the packages that this machine lacks, and unpack them into a folder."""
    try:
        missing = _missing()
    except subprocess.CalledProcessError:
        # A new machine has no package lists.
        _run(["apt-get", "-q", "update"])
        missing = _missing()
    packages = target / "packages"
    packages.mkdir()
    _run(["apt-get", "-q", "download", *missing], packages)
    for package in sorted(packages.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(target)])
    shutil.rmtree(packages)


def unpacked(root: Path) -> Browser:
    """The browser in a folder of unpacked packages."""
    fonts = root.with_name(root.name + "-fonts.conf")
    text = (
        '<?xml version="1.0"?><fontconfig><dir>/usr/share/fonts</dir>'
        f"<dir>{root}/usr/share/fonts</dir>{_SANS}</fontconfig>\n"
    )
    # Other processes may be reading it.
    if not fonts.is_file() or fonts.read_text() != text:
        fonts.write_text(text)
    libraries = {path.parent for path in (root / "usr").rglob("*.so*") if path.is_file()}
    return Browser(
        program=root / "usr" / "lib" / "chromium" / "chromium",
        variables={
            "LD_LIBRARY_PATH": os.pathsep.join(sorted(map(str, libraries))),
            "FONTCONFIG_FILE": str(fonts),
        },
    )


def _missing() -> list[str]:
    said = _run(["apt-get", "-q", "--simulate", "--no-install-recommends", "install", *PACKAGES])
    found = _MISSING.findall(said)
    return found if "chromium" in found else [*found, "chromium"]


def _starts(browser: Browser) -> bool:
    try:
        done = subprocess.run(
            [browser.program, "--version"],
            env=browser.environment(),
            capture_output=True,
            timeout=START_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS_MAX,
    )
    return done.stdout
