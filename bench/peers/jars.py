"""Bringing a peer's jars: once, by Maven coordinates, into a cache outside of the repository.

Which repository they come from is a matter of the machine's Maven settings. A cache entry is named
after the peer, its version and its pom, so a changed pom is fetched anew; it is complete when it
is there at all, because it is filled aside and renamed. Two who fetch at once take turns.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from bench.peers.errors import FetchFailed
from bench.peers.tools import find_java, find_maven

CACHE_VARIABLE = "BENCH_PEERS_CACHE"
FETCH_SECONDS_MAX = 900
POMS = Path(__file__).resolve().parent / "pom"
_VERSION_TAG = "{http://maven.apache.org/POM/4.0.0}peer.version"
_TOLD_LINES_MAX = 15


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where jars are kept: $BENCH_PEERS_CACHE, or a folder of the user's cache."""
    if environ.get(CACHE_VARIABLE):
        return Path(environ[CACHE_VARIABLE])
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rockgate" / "peers"


def version(peer: str) -> str:
    """The version that a peer's pom pins."""
    tag = ElementTree.parse(POMS / peer / "pom.xml").getroot().find(f".//{_VERSION_TAG}")
    assert tag is not None and tag.text, f"the pom of {peer} has no peer.version"
    return tag.text


def jar_directory(peer: str, cache: Path | None = None) -> Path:
    """Where a peer's jars are, or will be."""
    digest = hashlib.sha256((POMS / peer / "pom.xml").read_bytes()).hexdigest()[:8]
    return (cache or cache_directory()) / f"{peer}-{version(peer)}-{digest}"


def fetch(peer: str, cache: Path | None = None) -> Path:
    """The directory with a peer's jars, brought by Maven if they are not there yet."""
    target = jar_directory(peer, cache)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(target.name + ".lock")):
        if not target.is_dir():
            _fill(peer, target)
    return target


def _fill(peer: str, target: Path) -> None:
    java, maven = find_java(), find_maven()
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    command = [
        str(maven),
        *("--batch-mode", "--quiet", "--file", str(POMS / peer / "pom.xml")),
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={aside}",
    ]
    try:
        environ = {**os.environ, "JAVA_HOME": str(java.parent.parent)}
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
        if done.returncode:
            told = "\n".join(done.stdout.splitlines()[:_TOLD_LINES_MAX])
            raise FetchFailed(f"mvn ended with status {done.returncode} for {peer}:\n{told}")
        if not any(aside.glob("*.jar")):
            raise FetchFailed(f"mvn brought no jar for {peer}")
        aside.rename(target)
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"mvn took more than {FETCH_SECONDS_MAX} s for {peer}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
