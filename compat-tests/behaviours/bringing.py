"""Installs clients that are not Python packages: once, into a cache outside the repository.

The machine's settings determine the registry. A cache entry is named after the client and a digest
of its files, so that a changed pin or program is built again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from bench.peers import PeerError, jars
from bench.peers.cached_directory import cached_directory, user_cache
from bench.peers.tools import find_java
from tests.gates import is_ci

CACHE_VARIABLE = "ROCKGATE_COMPAT_CACHE"
SECONDS_MAX = 900
TOLD_LINES_MAX = 20


class CannotRun(Exception):
    """Something that a client needs is missing on this machine; the message says what to do."""


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """$ROCKGATE_COMPAT_CACHE, or a folder of the user's cache."""
    named = environ.get(CACHE_VARIABLE)
    return Path(named) if named else user_cache(environ) / "compat"


def leave_out(reason: CannotRun) -> None:
    """Skip with the reason; a run that must not skip fails instead."""
    if is_ci(os.environ):
        pytest.fail(f"CI=true allows no skip: {reason}", pytrace=False)
    pytest.skip(str(reason))


def entry(name: str, sources: Sequence[Path]) -> Path:
    """The cache entry for a build of these files."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_directory() / f"{name}-{digest.hexdigest()[:12]}"


def find(tool: str, advice: str) -> str:
    """A program on PATH."""
    found = shutil.which(tool)
    if found is None:
        raise CannotRun(f"no {tool} found: {advice}")
    return found


def run(command: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run one command of a preparation; a failure contains the end of its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
    )
    if done.returncode:
        told = "\n".join(done.stdout.splitlines()[-TOLD_LINES_MAX:])
        raise CannotRun(f"{Path(command[0]).name} ended with status {done.returncode}:\n{told}")
    return done.stdout


def pinned(file: Path, pattern: str) -> str:
    """The version that a file pins, by a pattern with one group."""
    found = re.search(pattern, file.read_text(encoding="utf-8"))
    assert found, f"{file} does not pin {pattern}"
    return found[1]


JAVA_FLAGS = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def java_program(folder: Path, pom: str, main: str, *more: str) -> list[str]:
    """The command that runs a class of `folder`/src, and of `more` folders of it, with the jars of
    `folder`/`pom`/pom.xml."""
    made, java = java_classes(folder, pom, *more), find_java()
    return [str(java), *JAVA_FLAGS, "-cp", f"{made}{os.pathsep}{made}/*", main]


def java_classes(folder: Path, pom: str, *more: str) -> Path:
    """The jars of `folder`/`pom`/pom.xml, with the classes of `folder`/src if there are any."""
    file = folder / pom / "pom.xml"
    sources = [path for each in ("src", *more) for path in sorted((folder / each).glob("*.java"))]

    def fill(aside: Path) -> None:
        jars.bring(f"{folder.name} {pom}", file, aside)
        if sources:
            compiler = str(find_java().with_name("javac"))
            run([compiler, "-d", str(aside), "-cp", f"{aside}/*", *map(str, sources)], folder)

    try:
        find_java()
        return cached_directory(entry(f"{folder.name}-{pom}", [file, *sources]), fill)
    except PeerError as error:
        raise CannotRun(str(error)) from error


def go_program(folder: Path) -> list[str]:
    """The command that runs the Go program of a folder."""
    go = find("go", "install Go 1.24 or newer (on Debian: apt-get install golang)")
    sources = [folder / "go.mod", folder / "go.sum", *folder.glob("*.go")]

    def fill(aside: Path) -> None:
        run([go, "build", "-o", f"{aside}/program", "."], folder, {"GOTOOLCHAIN": "local"})

    made = cached_directory(entry(folder.name, sources), fill)
    return [str(made / "program")]


def node_program(folder: Path, main: str) -> list[str]:
    """The command that runs a JavaScript program of a folder with its locked packages."""
    advice = "install Node.js 18 or newer (on Debian: apt-get install nodejs npm)"
    node, npm = find("node", advice), find("npm", advice)
    sources = [folder / "package.json", folder / "package-lock.json", *folder.glob("*.js")]

    def fill(aside: Path) -> None:
        for each in sources:
            shutil.copy(each, aside / each.name)
        run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], aside)

    return [node, str(cached_directory(entry(folder.name, sources), fill) / main)]


def debian_program(name: str, *packages: str) -> list[str]:
    """The command that runs a Debian program, installed or unpacked into the cache."""
    installed = shutil.which(name)
    if installed:
        return [installed]
    made = debian_files(name, *packages)
    libraries = {str(each.parent) for each in made.glob("usr/lib/**/*.so.*")}
    path = os.pathsep.join(sorted(libraries))
    return ["env", f"LD_LIBRARY_PATH={path}", str(made / "usr" / "bin" / name)]


def debian_files(name: str, *packages: str) -> Path:
    """The folder with the files of Debian packages, unpacked into the cache.

    Unpacking does not change the system and needs no root, except for package lists that root has
    downloaded once.
    """
    advice = f"install it (on Debian: apt-get update && apt-get install {name})"
    apt, dpkg = find("apt-get", advice), find("dpkg", advice)

    def fill(aside: Path) -> None:
        try:
            run([apt, "download", *packages], aside)
        except CannotRun as error:
            raise CannotRun(f"no {name} found, and {error}\n{advice}") from error
        for each in aside.glob("*.deb"):
            run([dpkg, "-x", str(each), str(aside)], aside)
            each.unlink()

    return cached_directory(cache_directory() / f"{name}-of-debian", fill)
